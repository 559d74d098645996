"""What a section of the tour gives the page."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from jaxface.reports.html import Section
from jaxface.reports.tables import Cell


@dataclasses.dataclass(frozen=True)
class Part:
    """What a section adds to the page: itself, rows of the table on top, and numbers for results.json."""

    section: Section
    headline: Sequence[Sequence[Cell]]  # (system, what was measured, value)
    results: Mapping[str, Any]
