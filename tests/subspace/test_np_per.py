"""NP-PER against dense eigen-analysis: three routes, ranks, duplicates, invariances, draws and derivatives."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core.fitinfo import FitError, Status, raise_if_failed
from jaxface.core.pytree import member
from jaxface.data import groups as data_groups
from jaxface.linalg import gram
from jaxface.subspace import compose, kernel_np_per, kernel_rca, np_per, pca, rca
from tests.reference import subspace_reference as reference
from tests.subspace import draws
from tests.tolerances import assert_close, largest_angle

ROUTES = [np_per.fit, np_per.fit_dual, np_per.fit_dependent]


@pytest.mark.parametrize("fit", ROUTES)
@pytest.mark.parametrize("sizes", [draws.SIZES, (2, 2), (6, 1), (1, 1, 1, 2)])
def test_every_route_is_the_dense_definition(fit, sizes, rng):
    x, groups = draws.grouped(rng, sizes)
    expected = reference.np_per(x, groups)
    found, info = fit(x, groups, num_groups=len(sizes))
    assert expected.shape[1] == len(sizes) - 1 == int(info.rank)
    assert int(info.status) == Status.OK
    assert largest_angle(found.basis, expected) < 1e-8
    assert_close(found.basis.T @ found.basis, np.eye(len(sizes) - 1))
    assert_close(found.mean, x.mean(axis=0))
    assert_close(draws.squared(draws.mapped(found, x)), draws.squared(x @ expected), factor=10)


@pytest.mark.parametrize("fit", ROUTES)
def test_groups_fall_on_points_that_differ(fit, rng):
    x, groups = draws.grouped(rng)
    z = draws.mapped(fit(x, groups, num_groups=5)[0], x)
    distance = np.sqrt(draws.squared(z))
    same = groups[:, None] == groups[None, :]
    assert distance[same].max() < 1e-12 * distance.max()
    assert distance[~same].min() > 0.1 * distance.max()


def test_scatters_of_the_coordinates(rng):
    """W'S_g W = 0 and W'S_b W = W'S_t W, which has full rank."""
    x, groups = draws.grouped(rng)
    basis = np.asarray(np_per.fit(x, groups, num_groups=5)[0].basis)
    within, between, total = (basis.T @ s @ basis for s in reference.scatters(x, groups))
    assert_close(within, np.zeros((4, 4)))
    assert_close(between, total)
    assert np.linalg.matrix_rank(total) == 4


@pytest.mark.parametrize("condition", [2e2, 3e3, 1e4, 3e4, 3e5])
def test_routes_agree_in_float64_when_samples_are_nearly_dependent(condition, rng):
    x, groups = draws.with_condition(rng, 60, 200, condition), rng.permutation(60).astype(np.int32) % 20
    (first, _), (dual, _), (dependent, _) = fits = [fit(x, groups, num_groups=20) for fit in ROUTES]
    assert [int(info.rank) for _, info in fits] == [19, 19, 19]
    assert largest_angle(dependent.basis, first.basis) < 1e-10
    # Once leaves eps times the square of the condition, so the last is projected twice.
    assert largest_angle(dual.basis, first.basis) < (1e-8 if condition < 3e5 else 1e-10)
    assert np.abs(dual.basis.T @ dual.basis - np.eye(19)).max() < 1e-8


@pytest.mark.parametrize("within", [True, False])
@pytest.mark.parametrize("apart", [1e-3, 1e-4, 1e-5])
def test_the_dual_form_of_images_that_are_almost_the_same(within, apart, rng):
    """One tiny eigenvalue, which shows in no pivot and in no average of the spectrum."""
    x, groups = rng.normal(size=(60, 200)), np.arange(60, dtype=np.int32) % 20
    x[23 if within else 3] = x[43 if within else 4] + apart * rng.normal(size=200)
    found, info = np_per.fit_dual(x, groups, num_groups=20)
    assert int(info.status) == Status.OK
    assert largest_angle(found.basis, np_per.fit(x, groups, num_groups=20)[0].basis) < 1e-9
    assert np.abs(found.basis.T @ found.basis - np.eye(19)).max() < 1e-8


@pytest.mark.parametrize("ratio", [1.0, 1e2, 1e4, 1e6])
def test_the_dual_form_where_groups_differ_mostly_as_their_images_do(ratio, rng):
    """Differences between groups lie in the span of those within but for one part in `ratio`."""
    within = with_spectrum(rng, np.geomspace(1, 1 / 3000, 12), 80)
    between = rng.normal(size=(5, 12)) @ within + rng.normal(size=(5, 80)) / ratio
    x, groups = from_differences(within, between)
    found, info = np_per.fit_dual(x, groups, num_groups=6)
    assert int(info.status) == Status.OK
    expected = np_per.fit_dependent(x, groups, num_groups=6, rtol=1e-15)[0]
    assert largest_angle(found.basis, expected.basis) < 1e-8 + 1e-14 * 3000 * ratio
    assert np.abs(found.basis.T @ found.basis - np.eye(5)).max() < 1e-8


CONDITIONS = [(1e5, Status.OK), (5e6, Status.RANK_DEFICIENT), (5e7, Status.RANK_DEFICIENT)]


@pytest.mark.parametrize(("condition", "status"), CONDITIONS)
def test_the_dual_form_refuses_an_eigenvalue_that_no_pivot_shows(condition, status, rng):
    """One weak direction, spread over all the samples."""
    for _ in range(5):
        within = with_spectrum(rng, np.r_[np.ones(39), 1 / condition], 80)
        x, groups = from_differences(within, rng.normal(size=(19, 80)) / 9)
        found, info = np_per.fit_dual(x, groups, num_groups=20)
        assert int(info.status) == status
        if status == Status.OK:
            assert largest_angle(found.basis, np_per.fit(x, groups, num_groups=20)[0].basis) < 1e-8


def with_spectrum(rng, values, d):
    """A matrix `[n, d]` with these singular values and random singular vectors."""
    left, right = (np.linalg.qr(rng.normal(size=(size, len(values))))[0] for size in (len(values), d))
    return left * values @ right.T


def from_differences(within, between):
    """Images whose differences to the first of their group are `within`, and of firsts to the first `between`."""
    first = np.r_[0 * between[:1], between]
    each = len(within) // len(first)
    x = np.stack([first, *(first + within[i::each] for i in range(each))], axis=1)
    return x.reshape(-1, x.shape[2]), np.repeat(np.arange(len(first), dtype=np.int32), each + 1)


@pytest.mark.parametrize("size", [1e-10, 1e-6])
def test_a_sketch_measures_what_a_projection_left(size, rng):
    inner = with_spectrum(rng, np.geomspace(1, 1e-3, 30), 90)
    span = np.linalg.qr(inner.T)[0]
    rows = np.linalg.qr(rng.normal(size=(90, 7)) - span @ (span.T @ rng.normal(size=(90, 7))))[0]
    rows = np.linalg.qr(rows - span @ (span.T @ rows))[0]
    lower = jnp.linalg.cholesky(inner @ inner.T)
    assert float(np_per._left_over(lower, inner, jnp.asarray(rows.T))) < 1e-12
    for _ in range(20):
        tilted = rows.T + size * np.outer(rng.normal(size=7), span @ rng.normal(size=30))
        left = np.linalg.norm(span.T @ tilted.T)
        assert left / 4 < float(np_per._left_over(lower, inner, jnp.asarray(tilted))) < 4 * left
    stretched = (1 + size) * rows.T
    assert float(np_per._left_over(lower, inner, jnp.asarray(stretched))) > size / 2


@pytest.mark.parametrize("wrong", [-1, 4, 7])
def test_ids_out_of_range_are_seen_inside_a_transformation(wrong, rng):
    x, groups = rng.normal(size=(12, 30)), np.repeat(np.arange(4, dtype=np.int32), 3)
    groups[[2, 5]] = wrong
    for fit in (np_per.fit, np_per.fit_dual, partial(rca.fit, ridge=0.1)):
        _, info = jax.vmap(lambda g, fit=fit: fit(x, g, num_groups=4))(groups[None])
        assert int(info.status[0]) == Status.RANK_DEFICIENT
    kernel = gram.gaussian(bandwidth=5.0)
    for fit in (kernel_np_per.fit, partial(kernel_rca.fit, ridge=0.1)):
        _, info = jax.vmap(lambda g, fit=fit: fit(kernel, x, g, num_groups=4))(groups[None])
        assert int(info.status[0]) == Status.RANK_DEFICIENT


def test_project_keeps_the_directions_it_is_told_to(rng):
    x, groups = draws.with_condition(rng, 60, 200, 3e4).astype(np.float32), rng.permutation(60).astype(np.int32) % 20
    exact = np.asarray(np_per.project_onto(x.astype(np.float64), groups, x.astype(np.float64), num_groups=20))

    def lost(**settings):
        found = np_per.project_onto(x, groups, x, num_groups=20, **settings)
        return np.linalg.norm(found - exact) / np.linalg.norm(exact)

    assert lost(rtol=1e-6) < 0.01
    assert lost(rtol=1e-3) > 0.1
    with pytest.raises(ValueError, match=r"rtol must lie in \[0, 1\); got 2.0"):
        lost(rtol=2.0)


def sine(left, right):
    """`largest_angle` of two bases of equal rank without a projector of 2304 x 2304."""
    left, right = np.asarray(left), np.asarray(right)
    return np.linalg.norm(left - right @ (right.T @ left), 2)


@pytest.mark.parametrize("condition", [2e2, 3e4])
def test_float32_finds_the_rank_of_faces(condition, rng):
    """N = 240, d = 2304, R = 120: m = 119, where eigenvalues of the scatter find fewer than N - 1 directions."""
    x, groups = draws.with_condition(rng, 240, 2304, condition), rng.permutation(240).astype(np.int32) % 120
    single = x.astype(np.float32)
    found, info = np_per.fit(single, groups, num_groups=120)
    assert int(info.status) == Status.OK
    assert int(info.rank) == 119
    exact, _ = np_per.fit(single.astype(np.float64), groups, num_groups=120)
    # A perturbation of the differences by a rounding turns their null space by the condition number times as much.
    assert sine(found.basis, exact.basis) < 4 * np.finfo(np.float32).eps * condition
    by_host, info = np_per.fit_dependent(single, groups, num_groups=120)
    assert int(info.rank) == 119
    assert by_host.basis.dtype == jnp.float32
    assert sine(by_host.basis, exact.basis) < 1e-5
    centered = single - single.mean(axis=0)
    spectrum = np.linalg.eigvalsh(centered @ centered.T)
    assert (spectrum > 240 * np.finfo(np.float32).eps * spectrum.max()).sum() < 239


def duplicated(rng, first, second, dtype):
    """Rows `first` and `second` equal, in groups 0 0 0 1 1 1 ..."""
    x, groups = rng.normal(size=(18, 40)).astype(dtype), np.repeat(np.arange(6, dtype=np.int32), 3)
    x[second] = x[first]
    return x, groups


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("first", "second", "rank"), [(0, 1, 5), (0, 2, 5), (0, 3, 4), (4, 17, 4)])
def test_duplicates_lower_the_rank_between_groups_only(first, second, rank, dtype, rng):
    x, groups = duplicated(rng, first, second, dtype)
    for fit in (np_per.fit, np_per.fit_dual):
        failed, info = fit(x, groups, num_groups=6)
        assert int(info.status) == Status.RANK_DEFICIENT
        assert int(info.rank) == -1
        assert_close(failed.basis, np.zeros((40, 5), dtype))
        with pytest.raises(FitError, match=r"RANK_DEFICIENT.*remove duplicates"):
            raise_if_failed(info)
    found, info = np_per.fit_dependent(x, groups, num_groups=6)
    assert int(info.status) == Status.OK
    assert int(info.rank) == rank
    expected = reference.np_per(x.astype(np.float64), groups)
    assert expected.shape[1] == rank
    assert largest_angle(found.basis, expected) < (1e-8 if dtype == np.float64 else 1e-5)
    assert_close(found.basis[:, rank:], np.zeros((40, 5 - rank), dtype))


@pytest.mark.parametrize("rtol", np.linspace(0.05, 0.95, 19))
def test_no_threshold_gives_more_directions_than_groups_less_one(rtol, rng):
    """Also where it cuts a spectrum without a gap: removing R - 1 rows removes at most that many."""
    x, groups = rng.normal(size=(18, 40)), np.repeat(np.arange(6, dtype=np.int32), 3)
    found = np_per.null_directions(x, groups, num_groups=6, rtol=rtol)
    assert found.shape[1] <= 5
    assert_close(found.T @ found, np.eye(found.shape[1]))


def test_rows_that_differ_by_their_own_rounding_are_duplicates(rng):
    x, groups = duplicated(rng, 0, 3, np.float32)
    x[3] = np.nextafter(x[0], np.float32(9))
    assert int(np_per.fit_dependent(x, groups, num_groups=6)[1].rank) == 4
    assert int(np_per.fit_dependent(x.astype(np.float64), groups, num_groups=6)[1].rank) == 5
    assert int(np_per.fit(x, groups, num_groups=6)[1].status) == Status.RANK_DEFICIENT


def test_rows_that_are_equal_to_rounding_need_a_threshold(rng):
    x, groups = duplicated(rng, 0, 3, np.float64)
    x[3] += 1e-9 * rng.normal(size=40)
    assert int(np_per.fit_dependent(x, groups, num_groups=6)[1].rank) == 5
    found, info = np_per.fit_dependent(x, groups, num_groups=6, rtol=1e-6)
    assert int(info.rank) == 4
    x[3] = x[0]
    assert largest_angle(found.basis, reference.np_per(x, groups)) < 1e-6


def test_groups_of_one_row_count_between(rng):
    x, groups = draws.grouped(rng, (3, 1, 1))
    basis, _ = np_per.fit(x, groups, num_groups=3)
    alone = np.flatnonzero(np.isin(groups, [1, 2]))
    together = np.where(groups == 2, 1, groups).astype(np.int32)
    merged, _ = np_per.fit(x, together, num_groups=2)
    assert draws.squared(draws.mapped(basis, x))[alone[0], alone[1]] > 1
    assert draws.squared(draws.mapped(merged, x))[alone[0], alone[1]] < 1e-20


@pytest.mark.parametrize("d", [8, 9, 10, 11, 12])
def test_fewer_dimensions_than_differences(d, rng):
    """n = 12, R = 5: m = min(R - 1, d - (n - R)), and the QR needs only that many differences between groups."""
    x, groups = draws.grouped(rng, d=d)
    expected = reference.np_per(x, groups)
    m = min(4, d - 7)
    assert expected.shape[1] == m
    for fit in (np_per.fit, np_per.fit_dependent):
        found, info = fit(x, groups, num_groups=5)
        assert int(info.rank) == m
        assert int(info.status) == Status.OK
        assert found.basis.shape == (d, 4)
        assert largest_angle(found.basis, expected) < 1e-8
    projected = np_per.project_onto(x, groups, x, num_groups=5)
    assert_close(projected, (x - x.mean(axis=0)) @ expected @ expected.T, factor=10)


def test_constant_images_have_no_direction():
    x, groups = np.ones((6, 10)), np.repeat(np.arange(3, dtype=np.int32), 2)
    found, info = np_per.fit_dependent(x, groups, num_groups=3)
    assert int(info.status) == Status.RANK_DEFICIENT
    assert int(info.rank) == 0
    assert_close(found.basis, np.zeros((10, 2)))
    assert int(np_per.fit(x, groups, num_groups=3)[1].status) == Status.RANK_DEFICIENT


@pytest.mark.parametrize("fit", ROUTES)
def test_invariant_to_shift_scale_and_rotation_but_not_to_other_maps(fit, rng):
    x, groups = draws.grouped(rng)
    rotation = np.linalg.qr(rng.normal(size=(40, 40)))[0]

    def distances(a):
        return draws.squared(draws.mapped(fit(a, groups, num_groups=5)[0], a))

    plain = distances(x)
    assert_close(distances(3 * x @ rotation + rng.normal(size=40)), 9 * plain, factor=100)
    stretched = distances(x * np.linspace(1, 3, 40))
    assert abs(stretched / stretched.max() - plain / plain.max()).max() > 0.01


@pytest.mark.parametrize("fit", ROUTES)
def test_order_of_rows_and_names_of_groups_do_not_matter(fit, rng):
    x, groups = draws.grouped(rng)
    order, names = rng.permutation(12), rng.permutation(5).astype(np.int32)
    one, _ = fit(x, groups, num_groups=5)
    other, _ = fit(x[order], names[groups[order]], num_groups=5)
    assert largest_angle(one.basis, other.basis) < 1e-12


def test_groups_that_are_classes_give_null_space_lda(rng):
    """Of the null space of S_w, the part that S_b sees: its basis from scipy, formed."""
    x, labels = draws.grouped(rng, (4, 4, 4), d=30)
    within, between, _ = reference.scatters(x, labels)
    null = reference.eigenvectors(within, is_zero=True, scale=np.trace(within))
    seen = reference.eigenvectors(null.T @ between @ null, is_zero=False, scale=np.trace(between))
    assert largest_angle(np_per.fit(x, labels, num_groups=3)[0].basis, null @ seen) < 1e-8


# Draws of groups: one call for all of them.


def drawn(rng, num_draws=4):
    x = rng.normal(size=(24, 50))
    labels = np.repeat(np.arange(6), 4)
    rows, groups = data_groups.kept_rows(data_groups.random_groups(labels, group_size=3, rng=rng, num_draws=num_draws))
    return x, rows, groups


def test_all_draws_in_one_call_equal_single_fits(rng):
    x, rows, groups = drawn(rng)
    maps, infos = jax.jit(jax.vmap(lambda r, g: np_per.fit(jnp.asarray(x)[r], g, num_groups=6)))(rows, groups)
    stacked, host = np_per.fit_dependent(x[rows], groups, num_groups=6)
    assert infos.rank.tolist() == host.rank.tolist() == [5] * 4
    for draw in range(4):
        single, _ = np_per.fit(x[rows[draw]], groups[draw], num_groups=6)
        assert_close(member(maps, draw), single)
        assert largest_angle(member(stacked, draw).basis, single.basis) < 1e-12


def test_draws_in_the_span_of_the_images_are_the_same_maps(rng):
    x, rows, groups = drawn(rng)
    span, _ = pca.fit(x, num_components=23)
    y = (x - np.asarray(span.mean)) @ np.asarray(span.basis)
    inner, _ = jax.vmap(lambda r, g: np_per.fit(jnp.asarray(y)[r], g, num_groups=6))(rows, groups)
    maps = jax.vmap(compose, in_axes=(None, 0))(span, inner)
    probe = rng.normal(size=50)
    for draw in range(4):
        single, _ = np_per.fit(x[rows[draw]], groups[draw], num_groups=6)
        assert largest_angle(member(maps, draw).basis, single.basis) < 1e-11
        there = draws.mapped(member(maps, draw), np.stack([probe, *x]))
        assert_close(draws.squared(there), draws.squared(draws.mapped(single, np.stack([probe, *x]))), factor=100)


def test_a_draw_with_a_duplicate_fails_alone_and_is_served_by_the_host(rng):
    x, groups = rng.normal(size=(3, 12, 40)), np.tile(np.arange(12, dtype=np.int32) // 3, (3, 1))
    x[1, 3] = x[1, 0]
    x[2, 1] = x[2, 0]
    _, infos = jax.vmap(lambda a, g: np_per.fit(a, g, num_groups=4))(x, groups)
    assert [Status(int(s)) for s in infos.status] == [Status.OK, Status.RANK_DEFICIENT, Status.RANK_DEFICIENT]
    maps, infos = np_per.fit_dependent(x, groups, num_groups=4)
    assert infos.rank.tolist() == [3, 2, 3]
    assert maps.basis.shape == (3, 40, 3)
    assert_close(maps.basis[1, :, 2], np.zeros(40))


def test_the_host_route_broadcasts_samples_against_draws(rng):
    x, groups = rng.normal(size=(8, 20)), np.stack([np.arange(8) // 2, np.arange(8) % 4]).astype(np.int32)
    maps, infos = np_per.fit_dependent(x, groups, num_groups=4)
    assert infos.status.shape == (2,)
    for draw in range(2):
        assert_close(member(maps, draw), np_per.fit_dependent(x, groups[draw], num_groups=4)[0])


def test_a_group_without_rows_is_seen_inside_a_transformation(rng):
    x, groups = rng.normal(size=(8, 20)), np.array([[0, 0, 1, 1, 2, 2, 3, 3], [0, 0, 1, 1, 3, 3, 3, 3]], np.int32)
    for fit in (np_per.fit, np_per.fit_dual):
        _, infos = jax.vmap(lambda g, fit=fit: fit(x, g, num_groups=4))(groups)
        assert [Status(int(s)) for s in infos.status] == [Status.OK, Status.RANK_DEFICIENT]


def test_new_groups_do_not_recompile(rng):
    x, groups = draws.grouped(rng)
    np_per.fit(x, groups, num_groups=5)
    before = np_per._fit._cache_size()
    np_per.fit(x + 1, rng.permutation(groups), num_groups=5)
    assert np_per._fit._cache_size() == before


# Derivatives.


def test_fit_stops_gradients(rng):
    x, groups = draws.grouped(rng)

    def outputs(a):
        found, _ = np_per.fit(a, groups, num_groups=5)
        return found.basis.sum() + found.mean.sum()

    assert_close(jax.grad(outputs)(x), np.zeros_like(x))


def test_projections_are_those_of_the_basis(rng):
    x, groups = draws.grouped(rng)
    probes = rng.normal(size=(2, 3, 40))
    found, _ = np_per.fit(x, groups, num_groups=5)
    basis = np.asarray(found.basis)
    projected = np_per.project_onto(x, groups, probes, num_groups=5)
    assert_close(projected, (probes - x.mean(axis=0)) @ basis @ basis.T, factor=10)


def triplet_loss(coordinates, x, probes):
    """A loss downstream: of squared distances from probes to the first and the second training row."""
    train, test = coordinates(x, x[:2]), coordinates(x, probes)
    squared = ((test[:, None, :] - train[None, :, :]) ** 2).sum(axis=-1)
    return jnp.log1p(squared[:, 0] / squared[:, 1]).sum()


@pytest.mark.parametrize("orthonormal", [False, True])
def test_a_loss_through_the_projector_has_the_right_derivative(orthonormal, rng):
    """Against central differences of the loss through the basis of `fit`; also where all singular values coincide."""
    x, groups = draws.grouped(rng, (2, 2, 3), d=12)
    if orthonormal:
        x = np.linalg.qr(rng.normal(size=(12, 7)))[0].T
    probes, direction = rng.normal(size=(3, 12)), rng.normal(size=x.shape)

    def through_basis(a, y):
        found, _ = np_per.fit_dependent(np.asarray(a), groups, num_groups=3)
        return (jnp.asarray(y) - found.mean[None, :]) @ found.basis

    def through_projector(a, y):
        return np_per.project_onto(a, groups, y, num_groups=3)

    def through_dual(a, y):
        found, _ = np_per.fit_dual(a, groups, num_groups=3)
        return (y - found.mean[None, :]) @ found.basis

    def along(t, coordinates=through_basis):
        return triplet_loss(coordinates, x + t * direction, probes)

    numerical = (along(1e-5) - along(-1e-5)) / 2e-5
    for coordinates in (through_projector, through_dual):
        value, slope = jax.value_and_grad(along)(0.0, coordinates)
        assert_close(value, along(0.0), factor=10)
        assert abs(slope - numerical) < 1e-7 * abs(numerical)


# Boundaries.

X, GROUPS = np.arange(240.0).reshape(6, 40) ** 1.5, np.array([0, 0, 1, 1, 2, 2], np.int32)


@pytest.mark.parametrize("fit", [*ROUTES, lambda x, groups, **settings: np_per.project_onto(x, groups, x, **settings)])
@pytest.mark.parametrize(
    ("x", "groups", "num_groups", "message"),
    [
        (
            X,
            np.arange(6, dtype=np.int32),
            6,
            r"number of samples minus num_groups must be at least 1 \(groups of one image alone teach nothing\); got 0",
        ),
        (X[:, :3], GROUPS, 3, "number of dimensions must be at least"),
        (X, GROUPS, 1, r"num_groups must be at least 2 \(one group has no other to be told from\); got 1"),
        (X, GROUPS, 2, r"groups must be in \[0, 2\); got values from 0 to 2"),
        (X, GROUPS, 4, r"groups must use every id in \[0, 4\); got 3 of them"),
        (X, GROUPS - 1, 3, r"groups must be in \[0, 3\); got values from -1 to 1.*jaxface.core.labels.dense"),
        (X, GROUPS.astype(float), 3, "groups must be dense integers; got dtype float64"),
        (X, GROUPS[:5], 3, r"groups must have shape \[.*n\] with n = 6; got shape \(5,\)"),
        (np.where(X > 9, np.nan, X), GROUPS, 3, "x must be finite"),
        (X.astype(int), GROUPS, 3, "x must be a floating point array; got dtype int64"),
    ],
)
def test_messages(fit, x, groups, num_groups, message):
    with pytest.raises(ValueError, match=message):
        fit(x, groups, num_groups=num_groups)


def test_no_null_direction_is_an_error_that_says_so():
    with pytest.raises(ValueError, match=r"at least 4 \(m = 0: 3 differences within groups leave no null direction; "):
        np_per.fit(X[:, :3], GROUPS, num_groups=3)


def test_the_dual_form_names_the_other_route_when_dimensions_are_few():
    with pytest.raises(ValueError, match=r"at least 5 \(the dual form needs independent samples; use np_per.fit\)"):
        np_per.fit_dual(X[:, :4], GROUPS, num_groups=3)
