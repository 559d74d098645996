"""What studies leave behind, loaded as an installed package would, gives the numbers of the study itself."""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.committee import samples
from experiments.common import inputs
from experiments.hallucinate import faces
from experiments.super_vector import codes, sets
from experiments.weak_labels import draws
from jaxface import data, ensembles, hallucination, metrics, verifier
from jaxface.core.blocks import each_row
from jaxface.ensembles import fusion, lda_member
from jaxface.faces import pipeline
from jaxface.hallucination import dictionary, fastfood, linear
from jaxface.mixtures import PCCAMixture
from jaxface.runtime import params_io
from jaxface.subspace import KernelMap, LinearMap, transform


def loaded(folder, name, cls):
    return params_io.load(folder / "params" / f"{name}.safetensors", cls)


def stage(folder, name):
    return np.load(folder / "stages" / f"{name}.npz")


def committee(config, folder, results):
    """Errors of the first split from the two files alone."""
    axes, members = loaded(folder, "axes", LinearMap), loaded(folder, "members", lda_member.LdaMember)
    vectors = inputs.load_vectors(config.data, pipeline.build(config.image_steps))
    (num_train,) = config.num_train
    split = next(samples.random_samples(config, jnp.asarray(vectors.x), vectors.ids, num_train))
    np.testing.assert_allclose(axes.basis, split.axes.basis)
    log_p = ensembles.log_posteriors(members, split.probes, posterior=lda_member.gaussian)
    error = (np.asarray(fusion.predict(fusion.sum(log_p))) != split.probe_ids).mean()
    assert error == stage(folder, f"train-{num_train}")["errors"][3, 0]


def finetune(config, folder, results):
    """The rates on the unseen people in the folder `test`, from their photos."""
    model = loaded(folder, "verifier", verifier.Verifier)
    photos = data.folders.load(folder / "test", size=tuple(config.data.options.size))
    z = verifier.encode(model, photos.images.astype(np.float64))
    trial = data.pairs.all_pairs(photos.ids)
    scores = np.asarray(verifier.score_pairs(model, z, trial.first, trial.second))
    np.testing.assert_allclose(results["saved model: Cllr"], metrics.cllr(scores, trial.is_same), rtol=1e-6)
    assert results["Cllr, as EM leaves it"] >= results["min Cllr, as EM leaves it"]


def hallucinate(config, folder, results):
    """The reconstructions of the first fold."""
    loaded_faces = inputs.load_faces(config.data)
    chosen = faces.select(config, loaded_faces)
    mask = faces.rectangle(chosen.shape, config.visible)
    fold = next(faces.folds(config, chosen))
    classes = {
        "pca": linear.AffineHallucinator,
        "ridge": linear.AffineHallucinator,
        "dw_ksvd": dictionary.DictionaryHallucinator,
        "fastfood_5x": fastfood.FastfoodDictionaryHallucinator,
    }
    for name in config.methods:
        model = loaded(folder, name, classes[name])
        rebuilt = np.clip(hallucination.reconstruct_matrix(model, fold.test[:, mask]), 0, 1)
        np.testing.assert_array_equal(rebuilt, stage(folder, f"fold-0-{name}")["images"])
    assert 0 <= results["ridge"]["min cllr"] <= results["ridge"]["calibrated cllr"]


def super_vector(config, folder, results):
    """The cosines of the first split by the super vector."""
    maps = tuple(loaded(folder, name, LinearMap) for name in ("axes_x", "axes_y"))
    mixture = loaded(folder, "mixture", PCCAMixture)
    given = sets.load(config)
    split = sets.random_splits(config, given.ids, config.num_train[0])[0]
    descriptors = sets.descriptors_of(config, given, split, 0)
    for ours, theirs in zip(maps, descriptors.maps, strict=True):
        np.testing.assert_array_equal(ours.basis, theirs.basis)
    vectors = np.asarray(codes.codes_of(mixture, descriptors)["super vector"])
    rows = split.test[data.pairs.limited(given.ids[split.test], max_rows=config.max_images)]
    first, second = np.triu_indices(len(rows), 1)
    scores = stage(folder, f"train-{config.num_train[0]}-split-0")["scores"][codes.METHODS.index("super vector"), 0]
    np.testing.assert_allclose((vectors[rows] @ vectors[rows].T)[first, second], scores, atol=1e-6)


def weak_labels(config, folder, results):
    """The errors of the first grouping, from vectors and not from their coordinates."""
    size = config.group_sizes[0]
    vectors = inputs.load_vectors(config.data, pipeline.build(config.image_steps))
    task = draws.problem(config, vectors)
    grouping = draws.random_draws(config, task, size)
    for name, cls in (("np_per", LinearMap), ("kernel_rca", KernelMap)):
        z = jax.jit(lambda model: each_row(transform, model, task.x))(loaded(folder, name, cls))
        first = draws.Draws(*(part[:1] for part in grouping[:2]), grouping.num_groups)
        error = draws.errors(task, first, draws.Embedded(z[None]), gallery=config.gallery)
        assert error[0] == stage(folder, f"groups-of-{size}")[f"error/{name}"][0]


CHECKS = {
    "committee": committee,
    "finetune": finetune,
    "hallucinate": hallucinate,
    "super_vector": super_vector,
    "weak_labels": weak_labels,
}
