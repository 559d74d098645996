r"""Tables for a paper: a plain `tabular`, which `\input{tables/NAME.tex}` takes without a package.

LaTeX reads UTF-8. Names in scripts beyond Latin need XeLaTeX or LuaLaTeX and a font that has them.
"""

from jaxface.core import messages
from jaxface.reports import tables
from jaxface.reports.tables import Table

__all__ = ["tabular"]

# Characters that LaTeX reads as commands, that its old fonts lack, and brackets: at the start of a row they would be
# an option of the line break before it.
_ESCAPES = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': "''",
        "[": "{[}",
        "]": "{]}",
        "*": "{*}",
        "−": "$-$",
        "±": r"$\pm$",
        "×": r"$\times$",
        "–": "--",
    }
)


def tabular(table: Table) -> str:
    """The table as a `tabular` between lines, its caption in a comment; numbers stand on the right."""
    numeric = table.numeric()
    rows = [" & ".join(_escaped(tables.text(cell)) for cell in row) + r" \\" for row in table.rows]
    head = " & ".join(_escaped(messages.printable(name)) for name in table.columns) + r" \\"
    caption = [f"% {messages.printable(table.caption)}"] if table.caption else []
    align = "".join("r" if right else "l" for right in numeric)
    begin, end = f"\\begin{{tabular}}{{{align}}}", r"\end{tabular}"
    return "\n".join([*caption, begin, r"\hline", head, r"\hline", *rows, r"\hline", end]) + "\n"


def _escaped(text: str) -> str:
    return text.translate(_ESCAPES)
