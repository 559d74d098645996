"""Mistakes on the command line, found before a study starts."""

import traceback

import pytest
from ml_collections import ConfigDict

from jaxface.runtime import command

CONFIG = """
from ml_collections import ConfigDict
def get_config(variant=None):
    return ConfigDict({"seed": 0, "sizes": (2, 4), "scale": 1.0, "methods": ("a", "b"), "steps": (("blur", 3),),
                       "nested": {"parts": (0.5,), "empty": ()}})
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "own.py").write_text(CONFIG)
    return tmp_path / "own.py"


def test_the_config_is_found_behind_an_equals_sign_or_a_space(file):
    for argv in (["x", f"--config={file}:small"], ["x", "--config", f"{file}"], ["x", "-config", f"{file}", "--n=1"]):
        assert command.default_config(argv).seed == 0
    assert command.default_config(["x"]) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def get_config(:", r"own\.py cannot be loaded: SyntaxError: invalid syntax"),
        ("import nothing_of_that_name", r"own\.py cannot be loaded: ModuleNotFoundError"),
        ("", r"own\.py is no config file: it has no function get_config"),
        ("def get_config(variant=None): return {}", r"get_config of .*own\.py must return a ConfigDict; got \{\}"),
        ("def get_config(): return None", r"own\.py cannot be loaded: TypeError: .* takes 0 positional arguments"),
        ("def get_config(variant): raise ValueError('no such variant')", "^no such variant$"),
    ],
)
def test_a_file_that_is_no_config_is_named(file, text, message):
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        command.default_config(["x", f"--config={file}:small"])


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("sizes", ("two",), r"--config\.sizes must hold numbers, as in \(2, 4\); got 'two'\."),
        ("sizes", (2, None), r"--config\.sizes must hold numbers, .*; got None\."),
        ("sizes", (2, True), r"--config\.sizes must hold numbers, .*; got True\."),
        ("methods", ("a", 1), r"--config\.methods must hold words, as in \('a', 'b'\); got 1\."),
        ("scale", float("nan"), r"--config\.scale must be a number; got NaN\."),
        ("nested.parts", (0.5, float("nan")), r"--config\.nested\.parts must be a number; got NaN\."),
    ],
)
def test_values_of_another_kind_than_the_default_are_refused(file, key, value, message):
    default, config = (command.default_config(["x", f"--config={file}"]) for _ in range(2))
    config.update_from_flattened_dict({key: value})
    with pytest.raises(ValueError, match=message):
        command.check_values(config, default)


def test_values_of_the_same_kind_pass(file):
    default, config = (command.default_config(["x", f"--config={file}"]) for _ in range(2))
    config.update_from_flattened_dict({"sizes": (), "scale": float("inf"), "nested.empty": ("x", 1), "methods": ("c",)})
    command.check_values(config, default)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["smoke"], "--config=configs/verify.py:smoke"),
        (["config.seed=1"], "--config.seed=1"),
        (["configs/x.py:smoke"], "--config=configs/x.py:smoke"),
        (["runs/verify"], "--workdir=runs/verify"),
    ],
)
def test_a_word_without_effect_is_refused_with_what_it_meant(words, meant):
    with pytest.raises(ValueError, match="is no flag and would have no effect") as caught:
        command.check_words(words, ["x", "--config=configs/verify.py"])
    assert str(caught.value).endswith(f"Did you mean {meant}?")
    command.check_words([], ["x"])


def test_a_missing_key_is_told_from_a_mistake_of_ours(tmp_path):
    config = ConfigDict({"a": {"b": 1}}).lock()
    plain = {}

    def error(read):
        try:
            read()
        except (AttributeError, KeyError) as caught:
            return caught

    for read in (lambda: config.gallery, lambda: config["gallery"], lambda: config.a.gallery):
        assert command.missing_key(error(read)) == "gallery"
    for read in (lambda: plain["gallery"], lambda: plain.gallery, lambda: traceback.gallery):
        assert command.missing_key(error(read)) is None
    for study in ("verify", "weak_labels"):
        (tmp_path / f"{study}.py").write_text("")
    given = f"{tmp_path}/verify.py:smoke"
    assert command.another_study("gallery", given, "experiments.weak_labels.__main__") == (
        f"{given} has no key 'gallery', which experiments.weak_labels reads. It is the config of another study "
        f"(verify): did you mean --config={tmp_path}/weak_labels.py?"
    )
    assert command.another_study("gallery", given, "mine").endswith("Add it, or give the config of that study.")
