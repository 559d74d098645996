"""Every config in every variant builds, is locked and complete, and its sections bind to what they are for."""

import importlib
import pathlib

import jax
import pytest
from ml_collections import ConfigDict

import experiments
from experiments.common import inputs
from experiments.weak_labels import clustering
from experiments.weak_labels.methods import METHODS
from jaxface import data
from jaxface.data import patterns
from jaxface.faces import pipeline
from jaxface.runtime import sections

VARIANTS = {
    "committee": ["default", "smoke", "yaleb", "lfw", "embeddings"],
    "embed": ["default", "aligned"],
    "encoder": ["default", "smoke", "lfw"],
    "evaluate": ["default"],
    "finetune": ["default", "smoke", "embeddings"],
    "hallucinate": ["default", "smoke", "lfw", "overcomplete", "million"],
    "kernel_maps": ["default", "smoke"],
    "people": ["default", "smoke", "photos"],
    "quality": ["default", "smoke", "lfw", "embedded"],
    "retrieve": ["default", "smoke", "many", "classes", "made"],
    "score": ["default", "identify"],
    "super_vector": ["default", "smoke", "lfw", "two_view", "missing", "ablations"],
    "tour": ["default", "smoke"],
    "verifier": ["default", "smoke", "embeddings", "images", "photos", "stream"],
    "verify": ["default", "smoke", "lfw", "lfw_yale", "lfw_yaleb", "embeddings"],
    "verify_lfw": ["default", "view1", "embeddings"],
    "weak_labels": ["default", "smoke", "raw", "yale", "yaleb", "lfw", "videos", "many", "embeddings"],
}
CASES = [(name, variant) for name, variants in VARIANTS.items() for variant in variants]


def config_of(name, variant):
    return importlib.import_module(f"configs.{name}").get_config(variant)


def keys(config, prefix=""):
    found = set()
    for name, value in config.items():
        found |= keys(value, f"{prefix}{name}.") if isinstance(value, ConfigDict) else {f"{prefix}{name}"}
    return found


def test_every_config_file_is_listed_here_and_has_its_experiment():
    root = pathlib.Path(__file__).parents[2]
    files = {path.stem for path in (root / "configs").glob("*.py")} - {"__init__", "common"}
    assert files == VARIANTS.keys()
    for name in files:
        assert (root / "experiments" / name / "__main__.py").is_file()
        assert f"\n{name} " in experiments.__doc__
        assert (
            f"python -m experiments.{name} --config=configs/{name}.py" in (root / "configs" / f"{name}.py").read_text()
        )


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_builds_locked_and_binds(name, variant):
    config = config_of(name, variant)
    assert config.is_locked
    assert config.runtime.is_locked
    with pytest.raises(AttributeError):
        config.seeed = 1
    for section in config.values():
        if isinstance(section, ConfigDict) and "loader" in section and section.loader is not None:
            others = {
                "embeddings": data.embeddings.load,
                "photos": lambda root: root,
                "stream": data.stream.from_file,
                "made": patterns.patterns,
            }
            sections.arguments(inputs.given(section.options), {**data.LOADERS, **others}[section.loader])


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_variants_change_values_and_never_keys(name, variant):
    changed, plain = config_of(name, variant), config_of(name, None)
    free = ("pixels.pipelines", "data.options", "target.options")  # named pipelines and arguments of a loader
    assert {k for k in keys(changed) if not k.startswith(free)} == {k for k in keys(plain) if not k.startswith(free)}


def test_image_steps_and_methods_bind():
    steps = [config_of("weak_labels", v).image_steps for v in VARIANTS["weak_labels"]]
    steps += [s for v in VARIANTS["tour"] for s in config_of("tour", v).pixels.pipelines.values()]
    for each in steps:
        pipeline.build(each)
    retrieve = config_of("retrieve", None)
    for each in (retrieve.color_steps, retrieve.texture_steps):
        pipeline.build(each)


@pytest.mark.parametrize("name", ["weak_labels", "retrieve"])
def test_methods_exist(name):
    for variant in VARIANTS[name]:
        config = config_of(name, variant)
        assert set(config.methods) <= METHODS.keys()
    assert set(config_of("weak_labels", None).clustering.methods) <= METHODS.keys()
    assert set(config_of("weak_labels", None).clustering.starts) == clustering.STARTS.keys()


def test_an_unknown_variant_names_the_nearest():
    with pytest.raises(
        ValueError, match=r"unknown variant 'smoek'; the variants are default, smoke\. Did you mean 'smoke'"
    ):
        config_of("tour", "smoek")


def test_an_unknown_loader_or_option_names_the_nearest():
    config = config_of("tour", "smoke").data.unlock()
    config.loader = "folder"
    with pytest.raises(ValueError, match=r"config\.data\.loader must be one of .* Did you mean 'folders'"):
        inputs.load_faces(config)
    config.loader = "orl"
    config.options.sise = (2, 2)
    with pytest.raises(ValueError, match=r"'sise' is not an argument of .*Did you mean 'size'"):
        inputs.load_faces(config)


def test_working_dtype_is_that_of_the_process():
    assert inputs.working_dtype() == jax.numpy.float64
