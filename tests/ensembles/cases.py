"""The transformation table of `jaxface.ensembles`."""

from tests.transformations import Case

CASES: list[Case] = []

EXEMPT: list = []
