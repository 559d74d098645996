import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core import prng
from jaxface.ensembles import choose, fit_members, log_posteriors, posteriors, sampling
from jaxface.ensembles.members import map_members
from jaxface.joint_bayes import collect, fit, init, llr_matrix
from jaxface.joint_bayes.scores import diagonalize
from jaxface.linalg import nullspace, scatter
from jaxface.subspace import LinearMap, np_per, pca, transform
from tests.ensembles import draws
from tests.tolerances import assert_close, largest_angle

KEY = jax.random.key(1)


def eigenfaces(rows, x):
    return pca.fit(x[rows], num_components=3)


def null_space_lda(rows, x, labels):
    """The directions that separate people among those in which no image of the bag leaves its person."""
    bag, people = x[rows], labels[rows]
    within = scatter.within_factor(bag, people, num_classes=4)
    between = nullspace.project_out(within, scatter.between_factor(bag, people, num_classes=4))
    return LinearMap(mean=bag.mean(axis=0), basis=nullspace.range_basis(between).basis[:, :3])


def weak_labels(rows, x, labels):
    """NP-PER whose groups are the people of the bag."""
    return np_per.fit(x[rows], labels[rows], num_groups=4)


def joint_bayes(weight, x, ids):
    stats = collect(x, jnp.where(weight > 0, ids, -1), num_people=4, shift=x.mean(axis=0))
    return fit(stats, init(stats), num_iters=3)


def bags(rng, num_members=5, d=30):
    x, labels = draws.people(rng, counts=(4, 4, 4, 4), d=d)
    rows = sampling.image_bags(KEY, labels, num_members=num_members, num_classes=4, images_per_class=3)
    return x, labels, rows


def test_any_fit_over_draws_equals_a_loop(rng):
    x, _, rows = bags(rng)
    found, info = fit_members(eigenfaces, rows, x)
    for one in range(5):
        alone, alone_info = pca.fit(x[np.asarray(rows[one])], num_components=3)
        assert largest_angle(found.basis[one], alone.basis) < 1e-8
        assert_close((found.mean[one], info.rank[one]), (alone.mean, alone_info.rank))


@pytest.mark.parametrize("block_size", [1, 2, 3])
def test_unchanged_by_block_size(block_size, rng):
    x, labels, rows = bags(rng)
    for fit_one, data in ((eigenfaces, (x,)), (null_space_lda, (x, labels)), (weak_labels, (x, labels))):
        assert_close(
            fit_members(fit_one, rows, *data, block_size=block_size), fit_members(fit_one, rows, *data), factor=0.01
        )


def test_np_per_of_people_is_null_space_lda_member_by_member(rng):
    x, labels, rows = bags(rng)
    found, info = fit_members(weak_labels, rows, x, labels)
    expected = fit_members(null_space_lda, rows, x, labels)
    assert np.asarray(info.rank).tolist() == [3] * 5
    for one in range(5):
        assert largest_angle(found.basis[one], expected.basis[one]) < 1e-8
        alone, _ = np_per.fit(x[np.asarray(rows[one])], labels[np.asarray(rows[one])], num_groups=4)
        assert_close(found.mean[one], alone.mean)
        assert largest_angle(found.basis[one], alone.basis) < 1e-8


def test_blocks_of_keys_and_pytrees():
    keys = prng.member_keys(KEY, 7)
    numbers = {"a": jnp.arange(7.0), "b": jnp.arange(14.0).reshape(7, 2)}

    def each(member):
        key, tree = member
        return jax.random.normal(key), tree["a"] * tree["b"]

    whole = map_members(each, (keys, numbers))
    for block_size in (1, 3, 4):
        assert_close(map_members(each, (keys, numbers), block_size=block_size), whole)


def test_null_space_members_on_bags_of_people_recognise_them_all(rng):
    """A bag has three of six people: its directions are theirs, its centres everybody's."""
    x, labels = draws.people(rng, counts=(4,) * 6, d=60, separation=3.0)
    classes = sampling.class_bags(KEY, num_members=8, num_classes=6, bag_size=3)
    rows = (4 * np.asarray(classes)[:, :, None] + np.arange(4, dtype=np.int32)).reshape(8, 12)  # all their images
    people = jnp.broadcast_to(jnp.repeat(jnp.arange(3, dtype=jnp.int32), 4), rows.shape)
    maps = fit_members(_null_space_bag, (rows, people), x)
    for one in range(8):
        bag = x[np.asarray(rows[one])]
        z = np.asarray(jax.vmap(transform, in_axes=(None, 0))(_one(maps, one), bag)).reshape(3, 4, -1)
        assert np.abs(z - z[:, :1]).max() < 1e-8 * np.abs(z).max()  # every person of the bag in one point
    centers = jax.vmap(lambda one: posteriors.class_centers(_rows(one, x), labels, num_classes=6))(maps)
    found = log_posteriors((maps, centers), x, posterior=cosine_to_centers)
    assert found.shape == (8, 24, 6)
    fused = np.exp(found).mean(axis=0)
    assert (fused.argmax(axis=1) == labels).mean() > 0.95
    assert (np.asarray(found).argmax(axis=2) == labels).mean() < (fused.argmax(axis=1) == labels).mean()


def _null_space_bag(bag, x):
    return null_space_lda(jnp.arange(12), x[bag[0]], bag[1])


def _one(tree, index):
    return jax.tree.map(lambda leaf: leaf[index], tree)


def _rows(linear_map, x):
    return (x - linear_map.mean[None, :]) @ linear_map.basis


def cosine_to_centers(member, x):
    linear_map, centers = member
    return posteriors.cosine(_rows(linear_map, x), centers)


def test_joint_bayes_members_score_pairs(rng):
    x, labels = draws.people(rng, counts=(5, 5, 5, 5), d=3)
    weights = sampling.class_weights(sampling.class_bags(KEY, num_members=3, num_classes=4, bag_size=3), labels)
    models, info = fit_members(joint_bayes, weights, x, labels)
    assert info.objective.shape == (3, 3)
    scores = map_members(lambda model: llr_matrix(diagonalize(model), x[:4], x[4:6]), models)
    for one in range(3):
        kept = np.asarray(weights[one]) > 0
        stats = collect(x, np.where(kept, labels, -1), num_people=4, shift=x.mean(axis=0))
        alone, _ = fit(stats, init(stats), num_iters=3)
        assert_close(scores[one], llr_matrix(diagonalize(alone), x[:4], x[4:6]), factor=1e3)


def test_one_program_for_a_function_of_a_module(rng):
    x, _, rows = bags(rng)
    fit_members(eigenfaces, rows, x)
    others = rows[::-1]
    with jax.no_tracing():
        fit_members(eigenfaces, others, 2 * x)


def test_members_choose_among_what_they_may_try():
    criterion = np.array([[0.1, 0.9, 0.5, 0.7], [0.1, 0.9, 0.5, 0.7], [0.3, 0.2, 0.3, 0.3]])
    np.testing.assert_array_equal(choose(criterion, np.array([[0, 1, 2], [0, 2, 3], [1, 2, 3]])), [1, 3, 2])
    everything = np.tile(np.arange(4), (3, 1))
    np.testing.assert_array_equal(choose(criterion, everything), [1, 1, 0])  # rho = |T|: all alike
    np.testing.assert_array_equal(choose(criterion, np.array([[2], [0], [1]])), [2, 0, 1])  # rho = 1: by chance


def test_random_parameters_of_a_committee(rng):
    """Each member tries three of eight ridges, drawn for it, and keeps the one with the smallest criterion."""
    ridges = jnp.logspace(-3, 1, 8)
    subsets = sampling.parameter_subsets(KEY, num_members=20, num_candidates=8, subset_size=3)
    criterion = jnp.broadcast_to(-jnp.abs(jnp.log(ridges))[None, :], (20, 8))
    chosen = choose(criterion, subsets)
    for member, candidate in zip(np.asarray(subsets), np.asarray(chosen), strict=True):
        assert candidate == member[np.argmax(np.asarray(criterion)[0, member])]
    assert len(set(np.asarray(chosen).tolist())) > 2
