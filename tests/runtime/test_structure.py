"""Crafted model files with a digest that fits: each is a ModelFileError that names the file and says what to do."""

import json
import struct

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors
import safetensors.numpy

from jaxface.core.pytree import params, static, unbounded, whole
from jaxface.joint_bayes import JointBayes, ScoringBasis
from jaxface.linalg.gram import Gaussian, Kernel
from jaxface.mixtures import GMM, PCCAMixture
from jaxface.runtime import params_io
from jaxface.runtime.params_io import ModelFileError
from jaxface.sparse import SparseCode
from jaxface.subspace import LinearMap


@params
class Pipeline:
    """A model with everything that a file can hold."""

    maps: tuple[LinearMap, ...]
    pair: tuple[jax.Array, jax.Array]
    places: jax.Array = whole()
    log_weights: jax.Array = unbounded()
    offset: jax.Array | None
    model: JointBayes
    size: int = static()
    prior: float = static()
    steps: tuple[tuple[str, bool], ...] = static()
    name: str | None = static()


def joint_bayes(dtype=np.float32):
    covs = {"identity_cov": np.diag([1.0, 0]), "noise_cov": np.array([[1, 0.5], [0.5, 2]])}
    return JointBayes(mean=jnp.zeros(2, dtype), **{name: jnp.asarray(cov, dtype) for name, cov in covs.items()})


def pipeline():
    return Pipeline(
        maps=(LinearMap(mean=jnp.zeros(3), basis=jnp.ones((3, 2))),),
        pair=(jnp.zeros(1), jnp.ones(2)),
        places=jnp.arange(3),
        log_weights=jnp.array([0, -jnp.inf]),
        offset=jnp.asarray(2.0),
        model=joint_bayes(),
        size=3,
        prior=0.5,
        steps=(("flip", True),),
        name=None,
    )


def crafted(path, change):
    """The file of a pipeline after `change(header, tensors)`, with a digest of what it then holds."""
    path.write_bytes(params_io.to_bytes(pipeline(), notes={"data": "faces"}))
    with safetensors.safe_open(path, framework="numpy") as archive:
        header = json.loads(archive.metadata()["jaxface"])
        tensors = {name: archive.get_tensor(name) for name in archive.keys()}  # noqa: SIM118
    changed = change(header, tensors)
    header["digest"] = params_io._digest(header, tensors)
    text = changed if isinstance(changed, str) else json.dumps(header)
    path.write_bytes(safetensors.numpy.save(tensors, metadata={"jaxface": text}))
    return path


def tensor(name, value):
    return lambda header, tensors: tensors.update({name: np.asarray(value)})


def field(*names, **values):
    """Changes the description of a field."""

    def change(header, tensors):
        inner = header["structure"]
        for name in names[:-1]:
            inner = inner["fields"][name]
        inner["fields"][names[-1]] = values.get("instead") or inner["fields"][names[-1]] | values

    return change


def static_field(name, value):
    return lambda header, tensors: header["structure"]["static"].update({name: value})


def header_of(**values):
    return lambda header, tensors: header.update(values)


def deep(header, tensors):
    nested = '{"tuple": [' * 100_000 + "]}" * 100_000
    return f'{{"version": 1, "structure": {nested}}}'


def twice(header, tensors):
    return json.dumps(header)[:-1] + ', "version": 1}'


def of_class(name, depth):
    """A field whose description is nested without end."""

    def change(header, tensors):
        inner = {"none": True}
        for _ in range(depth):
            inner = {"tuple": [inner]}
        header["structure"]["fields"][name] = inner

    return change


CRAFTED = {
    "missing tensor": (lambda h, t: t.pop("pair.0"), r"field 'pair\.0' is the tensor 'pair\.0', which is missing"),
    "extra tensor": (tensor("extra", np.ones(2)), r"holds tensors that no field of .*Pipeline takes: extra"),
    "wrong shape": (tensor("pair.1", np.ones(3)), r"field 'pair\.1' has shape \[2\]; its tensor has \[3\]"),
    "shape in words": (field("offset", shape="x"), r"field 'offset' has shape 'x'; its tensor has \[1\]"),
    "no shape": (field("offset", shape=None), "field 'offset' has shape None"),
    "shapes that do not fit": (
        lambda h, t: (t.update({"maps.0.mean": np.zeros(5)}),
                      h["structure"]["fields"]["maps"]["tuple"][0]["fields"]["mean"].update(shape=[5])),
        r"field 'maps\.0' is not valid: basis must have shape .* with d = 5; got shape \(3, 2\)"),
    "integers for floats": (tensor("pair.1", np.ones(2, int)), r"field 'pair\.1' holds int64; expected float32 or fl"),
    "half precision": (tensor("pair.1", np.ones(2, np.float16)), r"field 'pair\.1' holds float16; expected float32"),
    "booleans": (tensor("pair.1", np.ones(2, bool)), r"field 'pair\.1' holds bool"),
    "floats for integers": (tensor("places", np.ones(3)), "field 'places' holds float64; expected int32 or int64"),
    "NaN": (tensor("maps.0.mean", [0, np.nan, 0]), r"field 'maps\.0\.mean' must be finite; 1 of 3 values are NaN"),
    "infinity": (tensor("pair.1", [0, -np.inf]), r"field 'pair\.1' must be finite; 1 of 2 values"),
    "NaN beside infinity": (
        tensor("log_weights", [-np.inf, np.nan]), "field 'log_weights' must be finite; 1 of 2 .* NaN"),
    "indefinite": (
        tensor("model.identity_cov", np.diag(np.float32([1, -1]))),
        "field 'model' is not valid: identity_cov must be positive semidefinite; its least eigenvalue is -1"),
    "singular noise": (
        tensor("model.noise_cov", np.ones((2, 2), np.float32) - 2 * np.eye(2, dtype=np.float32)),
        "field 'model' is not valid: noise_cov must be positive definite; its least eigenvalue is -2"),
    "not symmetric": (
        tensor("model.noise_cov", np.float32([[1, 0.5], [0, 2]])), "noise_cov must be symmetric"),
    "deep header": (deep, "has a damaged header"),
    "deep structure": (of_class("offset", 200), "field 'offset' is a tuple; expected"),
    "duplicate key": (twice, "damaged header .*the key 'version' stands twice"),
    "class of another kind": (field("model", instead={"class": "os.system", "fields": {}, "static": {}}),
                              r"field 'model' is a os\.system; expected .*\.JointBayes"),
    "no class": (field("model", instead={"fields": {}}), "field 'model' is a None; expected .*JointBayes"),
    "tensor for a model": (field("model", instead={"array": "x", "shape": [1]}), "field 'model' is an array; exp"),
    "model for a tensor": (field("places", instead={"class": "x", "fields": {}, "static": {}}), "'places' is a x; exp"),
    "nothing for a tensor": (field("places", instead={"none": True}), "field 'places' is nothing; expected jax.*Array"),
    "fields that are a list": (field("model", fields=[]), "field 'model' has no fields, or they are no objects"),
    "longer tuple": (lambda h, t: h["structure"]["fields"]["pair"]["tuple"].append({"array": "offset", "shape": []}),
                     "field 'pair' is a tuple of 3; expected 2"),
    "tuple that is text": (field("pair", instead={"tuple": "ab"}), "field 'pair' is a tuple; expected"),
    "text for a structure": (field("pair", instead="ab"), "field 'pair' is described by 'ab', which is no object"),
    "name of a tensor that is a list": (field("offset", array=["x"]), r"is the tensor \['x'\], which is miss"),
    "text for a number": (static_field("size", "3"), "field 'size' is '3'; expected int"),
    "float for an int": (static_field("size", 3.5), r"field 'size' is 3\.5; expected int"),
    "bool for an int": (static_field("size", True), "field 'size' is True; expected int"),
    "NaN for a float": (static_field("prior", float("nan")), "field 'prior' is nan; expected float"),
    "number for a name": (static_field("name", 3), "field 'name' is 3; expected str or NoneType"),
    "steps of another form": (static_field("steps", [["flip", True, 1]]), r"field 'steps' is \[\['flip', True, 1\]\]"),
    "object for steps": (static_field("steps", {}), r"field 'steps' is \{\}; expected"),
    "notes that are a list": (header_of(notes=["x"]), "damaged header .*notes must be texts"),
    "no structure": (lambda h, t: h.pop("structure") and None, "damaged header .*structure"),
    "text as version": (header_of(version="1"), "has format version '1'"),
    "control characters": (field("model", **{"class": "a\x1b[2J"}), r"is a a\\x1b\[2J; expected"),
}  # fmt: skip


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_file_is_named_with_what_is_wrong_and_a_remedy(tmp_path, name):
    change, message = CRAFTED[name]
    file = crafted(tmp_path / "model.safetensors", change)
    with pytest.raises(ModelFileError, match=message) as caught:
        params_io.load(file, Pipeline)
    text = str(caught.value)
    assert text.startswith(str(file))
    assert text.endswith(("Fit the model again, or use another file.", "Save the model again.", "fit the model again."))
    assert "\x1b" not in text


def test_without_a_change_the_file_is_loaded(tmp_path):
    loaded = params_io.load(crafted(tmp_path / "model.safetensors", lambda header, tensors: None), Pipeline)
    assert jax.tree.structure(loaded) == jax.tree.structure(pipeline())
    np.testing.assert_array_equal(loaded.log_weights, [0, -np.inf])
    assert loaded.offset.shape == ()


def raw(header, rest=b"", length=None):
    """A safetensors file of these bytes."""
    return struct.pack("<Q", len(header) if length is None else length) + header + rest


@pytest.mark.parametrize(
    "content",
    [
        b"", b"x", b"PK\x03\x04", bytes(8), raw(b"{}", length=2**40), raw(b"{", length=2), raw(b"[" * 1000),
        raw(b" " * 10_000_001), raw(b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', bytes(4)),
        raw(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
            bytes(4)),
        raw(b'{"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}}', bytes(4)),
        raw(b'{"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}', bytes(2)),
        raw(b'{"__metadata__":{"jaxface":3}}'), raw(b"\xff\xfe"),
    ],
)  # fmt: skip
def test_bytes_that_are_no_model_are_named(tmp_path, content):
    file = tmp_path / "model.safetensors"
    file.write_bytes(content)
    for read in (lambda: params_io.load(file, Pipeline), lambda: params_io.notes(file)):
        with pytest.raises(ModelFileError, match=r"(is not a whole model file|not a jaxface model).* Save") as caught:
            read()
        assert str(caught.value).startswith(str(file))


def test_a_header_is_bounded_before_it_is_read(tmp_path):
    file = tmp_path / "model.safetensors"
    file.write_bytes(raw(b" " * 10_000_001))
    with pytest.raises(ModelFileError, match="its header claims 10000001 bytes; at most 10000000 are read"):
        params_io.load(file, Pipeline)


def mixture(**changes):
    fields = {"log_weights": jnp.log(jnp.array([0.25, 0.75])), "mean": jnp.zeros((2, 3)), "variance": jnp.ones((2, 3))}
    return GMM(**(fields | changes))


def views(**changes):
    shapes = {"mean_x": (2, 3), "mean_y": (2, 4), "loadings_x": (2, 3, 1), "loadings_y": (2, 4, 1), "noise_y": (2, 4)}
    fields = {name: jnp.ones(shape) for name, shape in shapes.items()}
    full = jnp.broadcast_to(jnp.eye(3), (2, 3, 3))
    return PCCAMixture(**({"log_weights": jnp.array([0, -jnp.inf]), "noise_x": full} | fields | changes))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (mixture(), None),
        (
            mixture(log_weights=jnp.zeros(2)),
            "log_weights must be logarithms of weights that add up to 1; these add up to 2",
        ),
        (mixture(variance=jnp.zeros((2, 3))), "variance must lie in"),
        (mixture(variance=jnp.ones((2, 4))), "variance must have shape"),
        (views(), None),
        (views(noise_y=-jnp.ones((2, 4))), "noise_y must lie in"),
        (views(noise_x=-jnp.ones((2, 3, 3))), "noise_x must be positive definite"),
        (views(loadings_x=jnp.ones((2, 3, 2))), "loadings_y must have shape"),
        (joint_bayes(np.float64), None),
        (ScoringBasis(mean=jnp.zeros(3), vectors=jnp.ones((3, 2)), values=jnp.array([1.0, 0])), None),
        (ScoringBasis(mean=jnp.zeros(3), vectors=jnp.ones((3, 2)), values=jnp.array([1.0, -1])), "values must lie in"),
        (jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), joint_bayes()), None),
    ],
)
def test_classes_say_which_models_have_no_density(tmp_path, model, message):
    file = tmp_path / "model.safetensors"
    file.write_bytes(params_io.to_bytes(model))
    if message is None:
        params_io.load(file, type(model))
        return
    with pytest.raises(ModelFileError, match=rf"the model is not valid: {message}"):
        params_io.load(file, type(model))


@params
class Nested:
    """A function and named parts."""

    kernel: Kernel
    code: SparseCode


def nested():
    code = SparseCode(*(jnp.full(2, float(k)) for k in range(len(SparseCode._fields))))
    return Nested(kernel=Gaussian(bandwidth=jnp.asarray(2.0)), code=code)


def test_kernels_and_named_tuples_come_back(tmp_path):
    file = tmp_path / "model.safetensors"
    file.write_bytes(params_io.to_bytes(nested()))
    loaded = params_io.load(file, Nested)
    assert jax.tree.structure(loaded) == jax.tree.structure(nested())
    assert loaded.kernel(jnp.zeros((1, 2)), jnp.zeros((1, 2))) == 1


@pytest.mark.parametrize(
    "name",
    ["os.system", "jaxface.joint_bayes.model.JointBayes", "jaxface.absent.Kernel", "jaxface.linalg.gram.gaussian"],
)
def test_a_function_is_nothing_but_a_class_of_the_library(tmp_path, name):
    file = tmp_path / "model.safetensors"
    file.write_bytes(params_io.to_bytes(nested()))
    header, tensors = params_io._read(file)
    header["structure"]["fields"]["kernel"]["class"] = name
    header["digest"] = params_io._digest(header, tensors)
    file.write_bytes(safetensors.numpy.save(tensors, metadata={"jaxface": json.dumps(header)}))
    with pytest.raises(ModelFileError, match=rf"field 'kernel' is a {name}; expected"):
        params_io.load(file, Nested)


def test_float64_that_a_float32_process_cannot_hold_is_refused(tmp_path):
    file = tmp_path / "model.safetensors"
    file.write_bytes(params_io.to_bytes(LinearMap(mean=np.array([1e300]), basis=np.ones((1, 1)))))
    params_io.load(file, LinearMap)
    with jax.enable_x64(False), pytest.raises(ModelFileError, match="field 'mean' must be finite"):
        params_io.load(file, LinearMap)
