"""A report into a run's folder: the page, its pictures and its tables as files of their own."""

from collections.abc import Sequence

from jaxface.reports import html
from jaxface.reports.html import Report, Section
from jaxface.reports.tables import Table
from jaxface.runtime import environment
from jaxface.runtime.workdir import Workdir


def publish(
    workdir: Workdir,
    *,
    title: str,
    lead: str,
    sections: Sequence[Section],
    headline: Table | None = None,
    credits: Sequence[str] = (),
) -> None:
    """Writes `report.html`, `figures/` and `tables/`."""
    report = Report(
        title=title,
        lead=lead,
        sections=sections,
        headline=headline,
        config=workdir.config,
        provenance=environment.provenance(),
        credits=[credit for credit in credits if credit],
    )
    for picture in html.pictures(report):
        workdir.write_bytes(f"figures/{picture.name}", picture.data)
    tables = [block for section in sections for block in section.blocks if isinstance(block, Table)]
    for index, table in enumerate([headline, *tables] if headline is not None else tables):
        workdir.write_text(f"tables/table-{index}.csv", table.to_csv())
    workdir.write_text("report.html", html.render(report))
