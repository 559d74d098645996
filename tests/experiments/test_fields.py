"""Wrong values in a config are found before the first stage, and named."""

import importlib
import math

import pytest
from ml_collections import ConfigDict

from experiments.common import fields
from tests.experiments.test_configs import config_of, keys

STUDIES = ["committee", "finetune", "hallucinate", "kernel_maps", "retrieve", "score", "super_vector", "tour", "verify"]
STUDIES += ["verify_lfw", "weak_labels", "embed", "quality"]
# Checked by what takes them: arguments of loaders and of image steps, places in a picture or a file, seeds.
ELSEWHERE = (
    "options",
    "steps",
    "pipelines",
    "visible",
    "crop",
    "seed",
    "x64",
    "quick_compile",
    "views.",
    "descriptors.",
    "fused_features",
)


def value_of(config, name):
    for part in name.split("."):
        config = config[part]
    return config


def numeric_fields(name):
    config = config_of(name, None)
    found = [key for key in sorted(keys(config)) if not any(word in key for word in ELSEWHERE)]
    return [key for key in found if type(flat(value_of(config, key))[0]) in (int, float)]


def flat(value):
    return [entry for inner in value for entry in flat(inner)] if isinstance(value, tuple) and value else [value]


def changed(name, key, value):
    config = config_of(name, None).unlock()
    section, _, field = key.rpartition(".")
    part = value_of(config, section) if section else config
    with part.ignore_type():
        part[field] = value
    return config.lock()


CASES = [(name, key) for name in STUDIES for key in numeric_fields(name)]


def wrong_values(value):
    """Negative, NaN, text and nothing at all, in the form of the value."""
    if not isinstance(value, tuple):
        return [-1, "many"] + ([math.nan] if isinstance(value, float) else [])
    inner = value[0]
    return [(), ("many",)] + [(each,) for each in (wrong_values(inner) if isinstance(inner, tuple) else [-1])]


@pytest.mark.parametrize(("name", "key"), CASES)
def test_a_wrong_value_is_refused_with_its_name(name, key):
    run = importlib.import_module(f"experiments.{name}.study").run
    for value in wrong_values(value_of(config_of(name, None), key)):
        if (name, value) == ("weak_labels", ()) and key in ("group_sizes", "videos.sizes"):
            continue  # no images, or no videos
        with pytest.raises(ValueError, match=rf"config\.{key}"):
            run(changed(name, key, value), None)  # without a folder: a stage would fail otherwise


@pytest.mark.parametrize("name", ["hallucinate", "retrieve", "weak_labels"])
def test_no_method_twice_and_none_at_all(name):
    run = importlib.import_module(f"experiments.{name}.study").run
    with pytest.raises(ValueError, match=r"config\.methods is empty; it needs at least one entry"):
        run(changed(name, "methods", ()), None)
    one = config_of(name, None).methods[0]
    with pytest.raises(ValueError, match="must name each choice once; got"):
        run(changed(name, "methods", (one, one)), None)
    with pytest.raises(ValueError, match=r"config\.methods\[0\] must be one of .* Did you mean"):
        run(changed(name, "methods", (one + "x",)), None)


def test_entries_are_named():
    config = ConfigDict({"inner": {"sizes": (3, 4.5), "pairs": ((0.1, 2.0),), "none": None, "flag": (True,)}})
    with pytest.raises(ValueError, match=r"config\.inner\.sizes\[1\] must be an integer; got 4\.5"):
        fields.counts(config, "sizes", section="inner")
    with pytest.raises(ValueError, match=r"config\.inner\.pairs\[0\]\[1\] must lie in \[0, 1\]; got 2"):
        fields.shares(config, "inner.pairs")
    with pytest.raises(ValueError, match=r"config\.inner\.flag\[0\] must be a number"):
        fields.positive(config, "inner.flag")
    fields.counts(config, "inner.none")
