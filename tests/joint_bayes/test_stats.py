"""Statistics: any labels, blocks against the whole, people across blocks, padding, shifts, and the two row forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxface.core.blocks import padded_batches
from jaxface.core.labels import dense
from jaxface.joint_bayes import (
    JointBayes,
    add,
    change_basis,
    collect,
    fit,
    group_by_count,
    log_likelihood,
    merge,
    pool,
    recenter,
    zero,
)
from jaxface.joint_bayes.stats import by_person, grouped, rows_about
from jaxface.linalg.class_stats import within_scatter
from tests.joint_bayes import draws
from tests.tolerances import assert_close


def definition(x, ids, num_people, shift):
    """Image by image."""
    count, total = np.zeros(num_people), np.zeros((num_people, x.shape[1]))
    second = np.zeros((x.shape[1], x.shape[1]))
    for row, person in zip(x, ids, strict=True):
        if person >= 0:
            count[person] += 1
            total[person] += row - shift
            second += np.outer(row - shift, row - shift)
    return count, total, second


def test_labels_of_any_kind_give_the_same_statistics(rng):
    x, ids = rng.normal(size=(9, 3)), np.array([0, 2, 1, 1, 0, 2, 2, 0, 1], np.int32)
    named = np.array(["ann", "bob", "cyd"])[ids]
    _, found, names = dense(named)
    stats = collect(x, found, num_people=len(names), shift=np.zeros(3))
    assert_close(stats, collect(x, ids, num_people=3, shift=np.zeros(3)))


@jax.jit
def collected(x, ids, shift):
    return collect(x, ids, num_people=4, shift=shift)


@settings(max_examples=40, deadline=None)
@given(ids=st.lists(st.integers(-1, 3), min_size=12, max_size=12), cut=st.integers(0, 12), seed=st.integers(0, 2**31))
def test_blocks_merged_are_the_whole(ids, cut, seed):
    """Also where one person's images lie in two blocks and where blocks are padded."""
    rng = np.random.default_rng(seed)
    x, ids, shift = rng.normal(size=(12, 3)), np.array(ids, np.int32), rng.normal(size=3)
    whole = collected(x, ids, shift)
    expected = definition(x, ids, 4, shift)
    assert_close(tuple(whole[:3]), expected, factor=0.01)
    left, right = (np.where(keep, ids, -1).astype(np.int32) for keep in (np.arange(12) < cut, np.arange(12) >= cut))
    merged = merge(collected(x, left, shift), collected(x, right, shift))
    assert_close(merged, whole, factor=0.01)


def test_batches_added_are_the_whole(rng):
    """Whatever the size of a batch, with rows to leave out, donated or not."""
    x, ids, shift = rng.normal(size=(24, 3)), rng.integers(-1, 4, size=24).astype(np.int32), rng.normal(size=3)
    fold = jax.jit(add, donate_argnums=0)
    stats = zero(shift, num_people=4)
    for start in range(0, 24, 8):
        stats = fold(stats, x[start : start + 8], ids[start : start + 8])
    assert_close(tuple(stats[:3]), definition(x, ids, 4, shift), factor=0.01)
    np.testing.assert_array_equal(stats.shift, shift)
    kept = zero(shift, num_people=4)
    assert_close(add(add(kept, x[:8], ids[:8]), x[8:], ids[8:]), stats, factor=0.01)
    assert float(kept.count.sum()) == 0  # pure
    assert add(zero(shift.astype(np.float32), num_people=4), x, ids).sum.dtype == np.float64


def test_errors_of_added_images(rng):
    stats = zero(np.zeros(3), num_people=4)
    for x, ids, message in (
        (np.zeros((2, 2)), np.zeros(2, int), r"shift must have shape \[d\] with d = 2; got shape \(3,\)"),
        (np.zeros((2, 3)), np.zeros(3, int), r"ids must have shape \[n\] with n = 2"),
        (np.zeros((2, 3)), np.array([0, 4]), r"ids must be in \[0, 4\) or -1 for padding; got values from 0 to 4"),
        (np.zeros((2, 3), np.float16), np.zeros(2, int), "x must be a floating point array of 32 or 64 bits"),
        (np.full((2, 3), np.nan), np.zeros(2, int), "x must be finite; 6 of 6 values are NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            add(stats, x, ids)
    with pytest.raises(ValueError, match="num_people must be at least 1; got 0"):
        zero(np.zeros(3), num_people=0)
    with pytest.raises(ValueError, match="shift must be a floating point array; got dtype int64"):
        zero(np.zeros(3, int), num_people=1)


def test_pooled_sets_are_each_about_their_own_shift(rng):
    """Of different people and different means: the difference of the means is in no statistic."""
    x, ids = rng.normal(size=(12, 3)), np.arange(12, dtype=np.int32) // 3
    first, second = collected(x[:6] + 7, ids[:6], np.full(3, 7.0)), collected(x[6:], ids[6:], np.zeros(3))
    pooled = pool(first, second)
    assert pooled.sum.shape == (8, 3)
    whole = collect(x, np.where(ids < 2, ids, ids + 4), num_people=8, shift=np.zeros(3))
    assert_close(pooled, whole, factor=10)


def test_padded_blocks_of_a_stream(rng):
    x, ids = rng.normal(size=(23, 3)), rng.integers(0, 4, size=23).astype(np.int32)
    shift = rng.normal(size=3)
    total = None
    blocks = [padded_batches(of_rows, block_size=12) for of_rows in (x, ids)]
    for (rows, valid), (names, _) in zip(*blocks, strict=True):
        part = collected(rows, np.where(valid, names, -1).astype(np.int32), shift)
        total = part if total is None else merge(total, part)
    assert_close(total, collect(x, ids, num_people=4, shift=shift), factor=0.01)


@pytest.mark.parametrize("rows", [23, 24, 25, 3])  # the last block shares rows, is full, holds one row; one block
def test_the_blocks_of_one_pass_do_not_show(rows, rng, monkeypatch):
    x, ids, shift = rng.normal(size=(rows, 3)), rng.integers(-1, 4, size=rows).astype(np.int32), rng.normal(size=3)
    monkeypatch.setattr("jaxface.joint_bayes.stats.BLOCK_SIZE", 8)
    found = collect(x, ids, num_people=4, shift=shift)
    assert_close(tuple(found[:3]), definition(x, ids, 4, shift), factor=0.01)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31), size=st.floats(0, 1e3))
def test_recenter_is_exact(seed, size):
    rng = np.random.default_rng(seed)
    x, ids, shift, other = rng.normal(size=(12, 3)), np.arange(12, dtype=np.int32) % 4, *rng.normal(size=(2, 3))
    other = size * other
    moved = recenter(collected(x, ids, shift), other)
    assert_close(moved, collected(x, ids, other), factor=0.1)
    # To the last bit, so that statistics of another block about the same shift can be added.
    np.testing.assert_array_equal(moved.shift, other)
    merge(moved, collected(x, ids, other))


def test_recenter_goes_to_the_mean_of_the_images(rng):
    x, ids = rng.normal(size=(12, 3)) + 7, np.arange(12, dtype=np.int32) % 4
    stats = recenter(collected(x, ids, np.zeros(3)))
    assert_close(stats.shift, x.mean(axis=0))
    assert_close(stats.sum.sum(axis=0), np.zeros(3))
    assert_close(stats.second_moment / 12, np.cov(x.T, bias=True), factor=10)


def test_no_images_stay_where_they_are():
    stats = recenter(collected(np.ones((12, 3)), np.full(12, -1, np.int32), np.ones(3)))
    np.testing.assert_array_equal(stats.shift, np.ones(3))
    assert float(stats.count.sum()) == 0


def test_within_scatter_is_the_sum_over_people(rng):
    groups = draws.people(rng, draws.joint_bayes(rng))
    expected = sum((g - g.mean(0)).T @ (g - g.mean(0)) for g in groups)
    stats = draws.stats(groups, rng.normal(size=3))
    assert_close(within_scatter(stats), expected)
    for rows in (by_person(stats), group_by_count(stats)):
        assert_close(rows.within, expected)


def test_singletons_have_no_scatter_within(rng):
    x = rng.normal(size=(12, 3)) + 5
    stats = collect(x, np.arange(12, dtype=np.int32), num_people=12, shift=np.zeros(3))
    assert_close(within_scatter(stats), np.zeros((3, 3)), factor=300)
    assert_close(by_person(stats).rows, x)


def test_rows_about_any_mean_have_the_same_second_moments(rng):
    """Compressed rows keep the first moment beside the second, so the model's mean may lie anywhere."""
    stats = draws.stats(draws.people(rng, draws.joint_bayes(rng)), rng.normal(size=3))
    loose, compressed = by_person(stats), group_by_count(stats)
    assert len(loose.rows) == 13
    assert len(compressed.rows) == 4 + 4 + 1 + 1  # d + 1 = 4 of the five and of the six people, and two alone
    np.testing.assert_array_equal(compressed.count, [1, 2, 3, 5])
    np.testing.assert_array_equal(compressed.num_people, [5, 6, 1, 1])
    for mean in (stats.shift, stats.shift + rng.normal(size=3)):
        for m in (1, 2, 3, 5):
            parts = [rows_about(rows, mean)[rows.row_count == m] for rows in (loose, compressed)]
            assert_close(parts[1].T @ parts[1], parts[0].T @ parts[0])


def test_the_form_follows_what_is_known(rng):
    stats = draws.stats(draws.people(rng, draws.joint_bayes(rng)), np.zeros(3))
    assert len(grouped(stats).rows) == 10
    assert jax.eval_shape(grouped, stats).rows.shape == (13, 3)


def test_the_shift_does_not_matter(rng):
    model = draws.joint_bayes(rng)
    groups = draws.people(rng, model)
    near, far = (draws.stats(groups, shift) for shift in (np.asarray(model.mean), np.full(3, 100.0)))
    assert_close(log_likelihood(model, far), log_likelihood(model, near), factor=100)


def test_float32_with_a_shift_near_the_mean_keeps_its_digits(rng):
    x = (rng.normal(size=(12, 3)) + 1000).astype(np.float32)
    ids = np.arange(12, dtype=np.int32) % 4
    stats = collect(x, ids, num_people=4, shift=np.full(3, 1000, np.float32))
    assert {leaf.dtype for leaf in stats[:4]} == {np.dtype("float32")}
    _, _, second = definition(x.astype(float), ids, 4, np.full(3, 1000.0))
    assert_close(stats.second_moment, second)
    assert group_by_count(stats).rows.dtype == jnp.float32


def test_the_fit_in_another_basis_is_the_fit_of_the_mapped_images(rng):
    """EM commutes with any invertible map, so a full basis changes the coordinates of a model and nothing else."""
    groups = draws.people(rng, draws.joint_bayes(rng))
    stats = draws.stats(groups, np.zeros(3))
    basis, mean = rng.normal(size=(3, 3)), rng.normal(size=3)
    mapped = change_basis(stats, basis, mean)
    assert_close(mapped, draws.stats([(images - mean) @ basis for images in groups], np.zeros(3)), factor=100)
    start = draws.start(stats)
    in_basis = JointBayes(
        mean=(start.mean - mean) @ basis,
        identity_cov=basis.T @ start.identity_cov @ basis,
        noise_cov=basis.T @ start.noise_cov @ basis,
    )
    model, found = (fit(s, m, num_iters=draws.NUM_ITERS)[0] for s, m in ((stats, start), (mapped, in_basis)))
    assert_close(found.identity_cov, basis.T @ model.identity_cov @ basis, factor=100)
    assert_close(found.noise_cov, basis.T @ model.noise_cov @ basis, factor=100)
