import importlib

import pytest

import jaxface.core
from jaxface.core import lazy


def test_modules_are_found_by_name():
    find = lazy.modules_of("jaxface.core", jaxface.core.__all__)
    assert all(find(name) is importlib.import_module(f"jaxface.core.{name}") for name in jaxface.core.__all__)


def test_other_names_are_missing_as_attributes_are():
    with pytest.raises(AttributeError, match=r"module 'jaxface\.core' has no attribute 'np'"):
        jaxface.core.np  # noqa: B018
