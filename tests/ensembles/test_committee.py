import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jaxface.ensembles import RULES, assess, committee, diagnose, fusion, growth, lda_member, log_posteriors
from tests.ensembles import draws
from tests.reference import ensembles_reference as reference
from tests.tolerances import assert_close


def problem(rng, shape=(6, 9, 4)):
    return draws.posteriors(rng, shape), rng.integers(0, shape[2], shape[1]).astype(np.int32)


def test_errors_equal_their_definitions(rng):
    log_p, labels = problem(rng)
    found = diagnose(log_p, labels)
    average, together, products = reference.errors(np.exp(log_p), labels)
    assert_close((found.average_error, found.committee_error, found.products), (average, together, products), factor=10)
    lengths = np.sqrt(np.diag(products))
    correlation = products / np.outer(lengths, lengths)
    assert_close(found.correlation, correlation, factor=10)
    assert_close(found.mean_correlation, correlation[~np.eye(6, dtype=bool)].mean(), factor=10)


def test_the_error_of_a_committee_is_that_of_its_members_and_of_their_pairs(rng):
    """`E_com = E_av / T + (1 / T^2) sum_{i != j} C_ij`, and E_av less the mean distance from the sum rule."""
    log_p, labels = problem(rng)
    found = diagnose(log_p, labels)
    pairs = np.sum(found.products) - np.trace(found.products)
    assert_close(found.committee_error, found.average_error / 6 + pairs / 36, factor=10)
    p = np.exp(log_p)
    ambiguity = np.mean(np.sum((p - p.mean(axis=0)) ** 2, axis=2))
    assert_close(found.ambiguity, ambiguity, factor=100)


@settings(max_examples=40, deadline=None)
@given(hnp.arrays(np.float64, (4, 3, 2), elements=st.floats(-40, 40)), st.integers(0, 7))
def test_a_committee_is_never_worse_than_its_average_member(logits, code):
    labels = np.array([code & 1, code >> 1 & 1, code >> 2 & 1], np.int32)
    found = diagnose(fusion.normalize(logits), labels)
    assert float(found.ambiguity) >= -1e-12


def test_in_zero_one_error_it_can_be_worse():
    """Every member is right on one image of three, and the vote on none."""
    right, wrong = [0.9, 0.1], [0.1, 0.9]
    log_p = np.log([[right, wrong, wrong], [wrong, wrong, right], [wrong, right, wrong]])
    labels = np.zeros(3, np.int32)
    single = np.mean([(fusion.predict(one) == labels).mean() for one in log_p])
    assert (fusion.predict(fusion.vote(log_p)) == labels).mean() < single
    found = diagnose(log_p, labels)
    assert float(found.committee_error) < float(found.average_error)


def test_equal_members_and_uncorrelated_members():
    log_p = np.log(np.array([[[0.7, 0.3]], [[0.7, 0.3]]]))
    found = diagnose(log_p, np.zeros(1, np.int32))
    assert_close((found.committee_error, found.mean_correlation), (found.average_error, np.asarray(1.0)))
    # Errors along (1, -1, 0) on different images have no product in the mean: E_com = E_av / T.
    sure, unsure = [1 - 1e-12, 5e-13, 5e-13], [0.6, 0.4, 0.0]
    with np.errstate(divide="ignore"):
        log_p = np.log(np.array([[unsure, sure], [sure, unsure]]))
    found = diagnose(log_p, np.zeros(2, np.int32))
    np.testing.assert_allclose(found.committee_error, found.average_error / 2, rtol=1e-9)
    np.testing.assert_allclose(found.mean_correlation, 0, atol=1e-9)


def test_members_without_error_and_a_committee_of_one(rng):
    with np.errstate(divide="ignore"):
        perfect = diagnose(np.log(np.ones((3, 2, 1)) * np.array([1.0, 0.0])), np.zeros(2, np.int32))
    assert_close(np.asarray(perfect.correlation), np.zeros((3, 3)))
    assert float(perfect.committee_error) == 0
    alone = diagnose(*problem(rng, (1, 5, 3)))
    assert_close(alone.committee_error, alone.average_error)
    assert np.isnan(alone.mean_correlation)


@pytest.mark.parametrize("name", RULES)
def test_growth_equals_the_rule_on_every_prefix(name, rng):
    log_p, labels = problem(rng, (7, 40, 3))
    found = growth(log_p, labels, rule=RULES[name])
    for size in range(1, 8):
        accuracy = (fusion.predict(RULES[name](log_p[:size])) == labels).mean()
        assert_close(found.accuracy[size - 1], accuracy)
        part = diagnose(log_p[:size], labels)
        assert_close(
            (found.average_error[size - 1], found.committee_error[size - 1]),
            (part.average_error, part.committee_error),
            factor=10,
        )
    assert len(set(np.asarray(found.accuracy).tolist())) > 2


def test_growth_with_weights(rng):
    log_p, labels = problem(rng, (5, 40, 3))
    weights = np.array([0.4, 0.3, 0.1, 0.15, 0.05])
    found = growth(log_p + np.log(weights)[:, None, None], labels)
    expected = [
        (fusion.predict(fusion.weighted(log_p[:size], weights[:size])) == labels).mean() for size in range(1, 6)
    ]
    assert_close(found.accuracy, np.array(expected))


def test_growth_settles_ties_as_the_rule_does():
    """Members that are permutations of one another: their sums tie exactly, and 0-1 accuracy hangs on it."""
    base = np.log(np.array([0.37, 0.21, 0.42], np.float32))
    shifted = np.stack([np.roll(base, shift) for shift in (0, 1, 2, 0, 2, 1, 1, 0, 2)])[:, None]
    log_p = np.concatenate([shifted, shifted[::-1]], axis=1)
    for name, rule in RULES.items():
        for label in range(3):
            labels = np.full(2, label, np.int32)
            expected = (fusion.predict(rule(log_p)) == labels).mean()
            assert float(growth(log_p, labels, rule=rule).accuracy[-1]) == float(expected), (name, label)


def test_impossible_classes_stay_finite():
    with np.errstate(divide="ignore"):
        log_p = np.log(np.array([[[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]], [[0.0, 0.5, 0.5]]]))
    for rule in RULES.values():
        found = growth(log_p, np.array([1], np.int32), rule=rule)
        assert np.isfinite(jax.tree.leaves(found)).all()


def test_vmaps_over_settings(rng):
    first, second = problem(rng), problem(rng)
    both = [np.stack(pair) for pair in zip(first, second, strict=True)]
    found = jax.vmap(functools.partial(growth, rule=fusion.vote))(*both)
    assert_close(jax.tree.map(lambda leaf: leaf[1], found), growth(*second, rule=fusion.vote), factor=0.1)


@pytest.mark.parametrize("rows", [1, 4, 9])
def test_the_number_of_images_at_a_time_changes_nothing(rows, rng, monkeypatch):
    """A block of 4 leaves one image, so the last block shares three with the one before."""
    log_p, labels = problem(rng)
    monkeypatch.setattr(committee, "_ELEMENTS", rows * 6 * 4)
    arrays = jnp.asarray(log_p), jnp.asarray(labels)
    found = committee._diagnose.__wrapped__(*arrays)  # a program would keep the size that it was made for
    grown = committee._growth.__wrapped__(*arrays, rule=fusion.sum)
    average, together, products = reference.errors(np.exp(log_p), labels)
    assert_close((found.average_error, found.committee_error, found.products), (average, together, products), factor=10)
    assert_close(grown.accuracy[-1], (fusion.predict(fusion.sum(log_p)) == labels).mean())


def test_assessing_members_is_assessing_their_posteriors(rng, monkeypatch):
    y, labels, variances = draws.coordinates(rng)
    axes = np.stack([rng.permutation(8)[:5] for _ in range(4)]).astype(np.int32)
    members, _ = lda_member.fit(y, labels, axes, num_classes=6)
    probes = y + 3 * np.sqrt(variances) * rng.normal(size=y.shape)
    log_p = log_posteriors(members, probes, posterior=lda_member.gaussian)
    monkeypatch.setattr(committee, "_ELEMENTS", 4 * 6 * 10)  # 27 images, 9 at a time
    diagnosis, grown = assess(members, probes, labels, posterior=lda_member.gaussian)
    assert_close(diagnosis, diagnose(log_p, labels), factor=10)
    assert_close(grown, growth(log_p, labels), factor=10)
    assert 0 < grown.accuracy[-1] < 1


def test_an_image_with_nan_is_nan_in_the_whole(rng, monkeypatch):
    log_p, labels = problem(rng)
    log_p[2, 4, 1] = np.nan
    monkeypatch.setattr(committee, "_ELEMENTS", 2 * 6 * 4)
    accuracy = np.asarray(growth(log_p, labels, rule=fusion.product).accuracy)
    assert np.isnan(accuracy).tolist() == [False, False, True, True, True, True]
    assert np.isnan(diagnose(log_p, labels).products[2]).all()
