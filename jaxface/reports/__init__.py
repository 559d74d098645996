"""Reports: figures, tables with intervals, and one self-contained HTML page a run.

figures               curves with bands, intervals side by side, ROC curves
score_figures         DET, Tippett, histograms and cross-entropy of scores
distribution_figures  values of several methods: a marker for each subject, histograms with fitted Gaussians
region_figures        where classifiers decide between two classes in a plane
sheets                sheets of faces, with labels that stay readable on a narrow page
tables                tables of numbers with intervals, as HTML, text and CSV
latex                 the same tables for a paper
html                  sections, figures and tables as one page that needs no other file
"""

from jaxface.reports import figures, html, sheets, tables

__all__ = ["figures", "html", "sheets", "tables"]
