"""A report into a run's folder: the page, its pictures and its tables as files of their own, as CSV and for LaTeX."""

from collections.abc import Sequence

from jaxface.reports import html, latex
from jaxface.reports.html import Report, Section
from jaxface.reports.tables import Table
from jaxface.runtime import environment, record
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
        made=record.in_words(workdir),
        config=workdir.config,
        provenance=environment.provenance(),
        credits=[credit for credit in credits if credit],
    )
    for picture in html.pictures(report):
        workdir.write_bytes(f"figures/{picture.name}", picture.data)
    for name, table in html.tables(report).items():
        workdir.write_text(f"tables/{name}.csv", table.to_csv())
        workdir.write_text(f"tables/{name}.tex", latex.tabular(table))
    workdir.write_text("report.html", html.render(report))
