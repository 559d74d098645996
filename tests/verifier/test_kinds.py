import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import verifier
from jaxface.core.fitinfo import Status, raise_if_failed
from jaxface.data import pairs, synthetic
from jaxface.verifier import kinds
from tests.tolerances import assert_close

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(3)
    made = synthetic.gaussian_identities(rng, num_people=40, images_per_person=4, dim=6)
    return made.features + 2.0, made.ids


def ranks(values):
    return np.argsort(np.argsort(values))


@pytest.mark.parametrize("name", list(kinds.KINDS))
def test_every_kind_is_a_verifier(name, people):
    x, ids = people
    made, info = kinds.fit_kind(KEY, kinds.KINDS[name], x[:80], ids[:80], num_people=20, num_iters=20)
    raise_if_failed(info, name)
    z = verifier.encode_vectors(made, x)
    trial = pairs.all_pairs(ids[80:] - 20)
    scores = verifier.score_pairs(made, z[80:], trial.first, trial.second)
    assert float(scores[trial.is_same].mean()) > float(scores[~trial.is_same].mean()) + 0.1
    matrix = verifier.score_matrix(made, z[80:], z[80:])
    assert_close(matrix[trial.first, trial.second], scores, factor=100)
    sets = verifier.enroll(z[80:], ids[80:] - 20, num_people=20)
    assert np.isfinite(np.asarray(verifier.score_sets(made, sets, sets))).all()


@pytest.mark.parametrize(("name", "center"), [("cosine", False), ("centered cosine", True)])
def test_a_cosine_ranks_pairs_by_the_cosine(name, center, people):
    x, ids = people
    made, _ = kinds.fit_kind(KEY, kinds.KINDS[name], x[:80], ids[:80], num_people=20, num_iters=1)
    others = x[80:]
    rows = others - x[:80].mean(axis=0) if center else others
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = (unit @ unit.T)[np.triu_indices(80, 1)]
    z = verifier.encode_vectors(made, others)
    scores = np.asarray(verifier.score_matrix(made, z, z))[np.triu_indices(80, 1)]
    np.testing.assert_array_equal(ranks(scores), ranks(cosines))
    slope, offset = np.polyfit(cosines, scores, 1)
    assert slope > 0
    assert_close(slope * cosines + offset, scores, factor=1e3)


def test_joint_bayes_keeps_all_dimensions_unless_told(people):
    x, ids = people
    made, _ = kinds.fit_kind(KEY, kinds.KINDS["Joint Bayes"], x, ids, num_people=40, num_iters=2)
    assert_close(made.reduction.basis, jnp.eye(6))
    made, _ = kinds.fit_kind(KEY, kinds.KINDS["Joint Bayes"], x, ids, num_people=40, num_iters=2, num_components=3)
    assert made.reduction.basis.shape == (6, 3)


def test_a_fit_that_fails_says_so(people):
    x, _ = people
    alone = np.arange(20)  # nobody has two rows
    _, info = kinds.fit_kind(KEY, kinds.KINDS["Joint Bayes"], x[:20], alone, num_people=20, num_iters=2)
    assert int(info.status) >= Status.NON_FINITE


@pytest.mark.parametrize("name", ["whitened, one length, Joint Bayes", "LDA, Joint Bayes"])
def test_the_report_of_the_reduction_is_kept(name, people, monkeypatch):
    x, ids = people

    def deficient(known):
        reduction, info = kinds._as_they_are(known)
        return reduction, info._replace(status=jnp.int32(Status.RANK_DEFICIENT))

    kind = kinds.KINDS[name]._replace(reduction=deficient)
    _, info = kinds.fit_kind(KEY, kind, x, ids, num_people=40, num_iters=2)
    assert int(info.status) == Status.RANK_DEFICIENT
