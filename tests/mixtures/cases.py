"""The transformation table of `jaxface.mixtures`."""

from tests.transformations import Case

CASES: list[Case] = []

EXEMPT: list = []
