"""The transformation table of `jaxface.features`."""

from tests.transformations import Case

CASES: list[Case] = []

EXEMPT: list = []
