import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

from jaxface.core.pytree import params, static
from jaxface.faces import pipeline
from jaxface.faces.pipeline import ImagePipeline
from jaxface.runtime import params_io, structure
from jaxface.runtime.params_io import ModelFileError
from jaxface.subspace import LinearMap
from tests.tolerances import assert_close


@params
class Calibration:
    slope: jax.Array
    offset: jax.Array


@params
class Recognizer:
    """A whole pipeline as a user would save it."""

    steps: ImagePipeline
    maps: tuple[LinearMap, ...]
    calibration: Calibration | None
    prior: float = static()


@params
class Other:
    slope: jax.Array


def recognizer(calibration=True):
    rng = np.random.default_rng(0)
    steps = pipeline.build([("resize", {"height": 8, "width": 6, "method": "area"}), ("local_norm", {})])
    maps = tuple(
        LinearMap(mean=jnp.asarray(rng.normal(size=4)), basis=jnp.asarray(rng.normal(size=(4, r)))) for r in (3, 2)
    )
    fitted = Calibration(slope=jnp.asarray(2.0, jnp.float32), offset=jnp.asarray(-1.0, jnp.float32))
    return Recognizer(steps=steps, maps=maps, calibration=fitted if calibration else None, prior=0.5)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(params_io.to_bytes(recognizer(), notes={"data": "ORL"}))
    return path


@pytest.mark.parametrize("calibration", [True, False])
def test_a_whole_pipeline_comes_back(tmp_path, calibration):
    path = tmp_path / "model.safetensors"
    path.write_bytes(params_io.to_bytes(recognizer(calibration)))
    loaded = params_io.load(path, Recognizer)
    assert jax.tree.structure(loaded) == jax.tree.structure(recognizer(calibration))
    assert_close(loaded, recognizer(calibration), factor=0.0)
    assert loaded.maps[1].basis.dtype == jnp.float64
    image = jnp.ones((16, 12))
    assert_close(pipeline.encode(loaded.steps, image), pipeline.encode(recognizer().steps, image))


def test_notes_travel_along_and_equal_models_are_equal_bytes(file):
    assert params_io.notes(file) == {"data": "ORL"}
    assert params_io.to_bytes(recognizer(), notes={"data": "ORL"}) == file.read_bytes()


def test_another_class_is_an_error_that_names_both(file):
    with pytest.raises(ModelFileError, match=r"the model is a .*\.Recognizer; expected .*\.LinearMap"):
        params_io.load(file, LinearMap)


def test_a_nested_class_that_does_not_fit_is_named(tmp_path):
    path = tmp_path / "model.safetensors"
    wrong = Recognizer(steps=recognizer().steps, maps=(), calibration=Other(slope=jnp.ones(1)), prior=0.5)
    path.write_bytes(params_io.to_bytes(wrong))
    with pytest.raises(ModelFileError, match=r"field 'calibration' is a .*\.Other; expected .*\.Calibration"):
        params_io.load(path, Recognizer)


def rewritten(file, **changes):
    with safetensors.safe_open(file, framework="numpy") as archive:
        header = json.loads(archive.metadata()["jaxface"])
    loaded = safetensors.numpy.load_file(file)
    file.write_bytes(safetensors.numpy.save(loaded, metadata={"jaxface": json.dumps(header | changes)}))


def test_truncated_edited_foreign_and_missing_files_are_named(file, tmp_path):
    whole = file.read_bytes()
    file.write_bytes(whole[:-7])
    with pytest.raises(ModelFileError, match=r"model\.safetensors is not a whole model file"):
        params_io.load(file, Recognizer)
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ModelFileError, match="was changed after it was saved"):
        params_io.load(file, Recognizer)
    file.write_bytes(whole)
    rewritten(file, notes={"data": "LFW"})
    with pytest.raises(ModelFileError, match="was changed after it was saved"):
        params_io.load(file, Recognizer)
    rewritten(file, version=99)
    with pytest.raises(ModelFileError, match=r"has format version 99; this jaxface reads version 1\. Load it with"):
        params_io.load(file, Recognizer)
    file.write_bytes(safetensors.numpy.save({"x": np.ones(2)}))
    with pytest.raises(ModelFileError, match="is a safetensors file but not a jaxface model"):
        params_io.load(file, Recognizer)
    for header in ("nonsense", "[]", "{}"):
        file.write_bytes(safetensors.numpy.save({"x": np.ones(2)}, metadata={"jaxface": header}))
        with pytest.raises(ModelFileError, match=r"model\.safetensors has a damaged header"):
            params_io.load(file, Recognizer)
    for empty in (None, np.ones(2), ()):
        file.write_bytes(params_io.to_bytes(empty))
        with pytest.raises(ModelFileError, match=r"holds no model of a class; expected .*Recognizer"):
            params_io.load(file, Recognizer)
    with pytest.raises(FileNotFoundError, match="no model file at"):
        params_io.load(tmp_path / "absent", Recognizer)


def test_fields_that_this_version_does_not_have_are_named(file):
    header, tensors = params_io._read(file)
    header["structure"]["fields"]["extra"] = {"none": True}
    with pytest.raises(ValueError, match=r"fields of .*Recognizer are .*'extra'.*; this jaxface expects"):
        structure.build(header["structure"], Recognizer, tensors)


def test_functions_are_not_saved():
    with pytest.raises(TypeError, match="model is a function; a model holds arrays, tuples and params classes"):
        params_io.to_bytes(recognizer)
