import jax
import numpy as np
import pytest

from jaxface import joint_bayes, verifier
from jaxface.core.fitinfo import raise_if_failed
from jaxface.data import stream, synthetic
from jaxface.verifier import kinds
from tests.tolerances import assert_close

SETTINGS = {"num_people": 20, "num_iters": 4}


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(3)
    made = synthetic.gaussian_identities(rng, num_people=20, images_per_person=4, dim=6)
    return made.features + 2.0, made.ids


@pytest.mark.parametrize("name", list(kinds.KINDS))
def test_from_a_disk_as_from_memory(name, people, tmp_path):
    x, ids = people
    whole, of_whole = kinds.fit_kind(jax.random.key(0), kinds.KINDS[name], x, ids, **SETTINGS)
    np.save(tmp_path / "x.npy", np.concatenate([x[:50], np.full((1, 6), np.nan), x[50:]]))
    source = stream.from_npy(tmp_path / "x.npy", np.insert(ids, 50, -1))
    found, info = verifier.fit_stream(kinds.KINDS[name], source, batch_size=32, **SETTINGS)
    raise_if_failed(info)
    assert int(info.status) == int(of_whole.status)
    points = [verifier.encode_vectors(each, x[:30]) for each in (found, whole)]
    scores = [np.asarray(verifier.score_matrix(each, z, z)) for each, z in zip((found, whole), points, strict=True)]
    assert_close(*scores, factor=1e3)


def test_one_pass_serves_several_kinds(people):
    x, ids = people
    source = stream.from_array(x, ids)
    read = []

    def counted(start, stop):
        read.append(stop - start)
        return x[start:stop]

    stats = joint_bayes.collect_stream(source, num_people=20, batch_size=32)
    for name in ("Joint Bayes", "LDA, Joint Bayes"):
        verifier.fit_stream(
            kinds.KINDS[name], source._replace(read_range=counted), batch_size=32, stats=stats, **SETTINGS
        )
    assert not read
    verifier.fit_stream(
        kinds.KINDS["cosine"], source._replace(read_range=counted), batch_size=80, stats=stats, **SETTINGS
    )
    assert sum(read) >= len(x)
