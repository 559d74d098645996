"""Reports: figures, tables with intervals, and one self-contained HTML page a run.

figures     curves with bands, intervals side by side, ROC and DET curves, grids of faces
tables      tables of numbers with intervals, as HTML, text and CSV
html        sections, figures and tables as one page that needs no other file
"""

from jaxface.reports import figures, html, tables

__all__ = ["figures", "html", "tables"]
