"""The encoder: ratios and gradients by hand, a start that is the baseline, and steps that descend."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs import encoder as configs
from experiments.encoder import network, saliency, study, training
from experiments.encoder.study import Part
from experiments.encoder.training import Parameters
from jaxface import joint_bayes
from jaxface.data import synthetic
from jaxface.runtime import launch
from tests.tolerances import assert_close


def settings(**changes):
    config = configs.get_config("smoke").unlock()
    config.update({"num_components": 4, "rank": 3, "people_a_batch": 4, "images_a_person": 3, **changes})
    return config.lock()


@pytest.fixture(scope="module")
def faces():
    made = synthetic.rendered_faces(np.random.default_rng(0), num_people=8, images_per_person=4, size=(7, 6)).data
    return Part(np.asarray(made.images, np.float64), made.ids)


@pytest.fixture(scope="module")
def start(faces):
    found = study.initial(settings(), jax.random.key(0), faces)
    rng = np.random.default_rng(1)  # hidden units that say something
    encoder = found.encoder
    out = 0.1 * rng.normal(size=encoder.out.shape)
    moved = network.Encoder(
        mean=encoder.mean, projection=encoder.projection, hidden=encoder.hidden, offset=encoder.offset, out=out
    )
    return found, Parameters(moved, found.model)


def test_ratios_are_those_of_encoded_photos(faces, start):
    _, parameters = start
    model = joint_bayes.constrained(parameters.model)
    z = jax.vmap(network.encode, in_axes=(None, 0))(parameters.encoder, faces.images)
    found = training.ratios(parameters, jnp.asarray(faces.images))
    for i, j in ((0, 1), (3, 17), (31, 4)):
        assert_close(found[i, j], joint_bayes.llr(model, z[i], z[j]), factor=1e3)
    sets = training.set_ratios(parameters, jnp.asarray(faces.images).reshape(8, 4, 7, 6))
    basis = joint_bayes.diagonalize(model)
    sums = joint_bayes.set_sums(basis, z[jnp.array([4, 5, 6])], jnp.zeros(3, jnp.int32), num_sets=1)
    probe = joint_bayes.project(basis, z[11])
    one = jnp.ones((), z.dtype)
    assert_close(sets[1, 2], joint_bayes.set_llr(basis, sums.sum[0], sums.weight[0], probe, one), factor=1e3)


def test_the_start_is_pca_and_joint_bayes(faces, start):
    plain, _ = start
    x = faces.images.reshape(32, -1)
    z = (x - x.mean(axis=0)) @ plain.encoder.projection
    assert_close(jax.vmap(network.encode, in_axes=(None, 0))(plain.encoder, faces.images), z, factor=10)


def test_the_derivative_of_a_ratio_by_a_pixel(faces, start):
    _, parameters = start
    pair = jnp.asarray(faces.images[[2, 9]])
    ratio, slopes = saliency.of_pair(parameters, pair)
    assert_close(ratio, training.ratios(parameters, pair)[0, 1])
    for place in ((0, 3, 2), (1, 0, 5)):
        ends = [training.ratios(parameters, pair.at[place].add(step))[0, 1] for step in (1e-5, -1e-5)]
        np.testing.assert_allclose(slopes[place], (ends[0] - ends[1]) / 2e-5, rtol=1e-5, atol=1e-6)


def test_steps_descend_and_people_stay_on_their_side(faces, start):
    config = settings(num_segments=2, steps_a_segment=6, people_a_batch=8, images_a_person=4)
    path, trace = training.train(config, start[0], faces.images, faces.ids, np.random.default_rng(0))
    assert len(path) == 3
    assert len(trace) == 12
    assert trace[-1] < trace[0]
    batch = training._batch(settings(), faces.images, faces.ids, np.random.default_rng(0))
    assert batch.shape == (4, 3, 7, 6)
    loaded = type("Faces", (), {"images": faces.images, "ids": faces.ids})
    for _, parts in study.draws(settings(train_people=4, held_out_people=2, test_people=2), loaded):
        shown = [{image.tobytes() for image in part.images.astype(np.float32)} for part in parts]
        assert not shown[0] & shown[1] | shown[0] & shown[2] | shown[1] & shown[2]


def test_a_batch_larger_than_the_people_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"config\.people_a_batch must be at most config\.train_people, 20; got 21"):
        launch.execute(study.run, settings(people_a_batch=21), tmp_path)
