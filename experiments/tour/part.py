"""The contribution of a section of the tour to the page."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from jaxface.reports.html import Section
from jaxface.reports.tables import Cell


@dataclasses.dataclass(frozen=True)
class Part:
    """A section, its rows in the table at the top, and its numbers for results.json."""

    section: Section
    headline: Sequence[Sequence[Cell]]  # (system, what was measured, value)
    results: Mapping[str, Any]
