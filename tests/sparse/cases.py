"""The transformation table of `jaxface.sparse`."""

from tests.transformations import Case

CASES: list[Case] = []

EXEMPT: list = []
