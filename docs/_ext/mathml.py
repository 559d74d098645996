"""Mathematics as MathML, which browsers draw themselves: no script to load and none to wait for."""

from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(latex2mathml.tex2mathml(node.astext()))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    number = (
        f'<span class="eqno">({node["number"]})</span>' if node.get("number") else ""
    )
    markup = latex2mathml.tex2mathml(node.astext(), as_block=True)
    writer.body.append(
        writer.starttag(node, "div", CLASS="math") + number + markup + "</div>\n"
    )
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the renderer `mathml`."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(_inline, None), block_renderers=(_block, None)
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
