"""Drawings as SVG images and Graphviz source."""

from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

from burn.record import atomic_write
from burn_import.drawing.flow import Flow
from burn_import.drawing.layout import (
    LINE,
    PADDING,
    Layout,
    Rectangle,
    layout,
    texts_of,
)
from burn_import.output import OutputRefused, make_parent

_FILLS = {
    "module": "#e8f0fe",
    "operator": "#f1f3f4",
    "input": "#e6f4ea",
    "output": "#fef7e0",
}
_STYLE = (
    "text{font:11px ui-monospace,Menlo,Consolas,monospace;fill:#202124}"
    ".title{font-weight:bold}.name{font-size:16px}"
    "rect{stroke:#5f6368}polyline{fill:none;stroke:#5f6368}"
)


def check_drawing(path: Path, *, force: bool) -> None:
    """Check that a drawing may be written at ``path``.

    Raises:
        OutputRefused: the suffix is unsupported, or the file exists and not ``force``.
    """
    if path.suffix not in _WRITERS:
        raise OutputRefused(
            f"expected a drawing that ends in .svg or .dot, got {str(path)!r}",
            f"Pass --graph {path.with_suffix('.svg')}.",
        )
    if path.exists() and not force:
        raise OutputRefused(
            f"{path} already exists", "Pass --force to replace it, or another name."
        )


def write_drawing(flow: Flow, path: Path, *, force: bool = False) -> None:
    """Write a flow as SVG or Graphviz source, chosen by the suffix.

    Raises:
        OutputRefused: as ``check_drawing`` does.
        OSError: the disk or the directory does not allow it.
    """
    check_drawing(path, force=force)
    make_parent(path)
    atomic_write(path, _WRITERS[path.suffix](flow).encode("utf-8"))


def svg_of(flow: Flow) -> str:
    """Return an SVG image with a box for each module and a line for each edge."""
    return "\n".join(_svg_lines(flow, layout(flow))) + "\n"


def _svg_lines(flow: Flow, drawn: Layout) -> Iterator[str]:
    title = f"{flow.title} (modules to depth {flow.depth})"
    width = max(drawn.width, 40 + 10 * len(title))
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
        f'height="{drawn.height:.0f}" viewBox="0 0 {width:.0f} {drawn.height:.0f}">'
    )
    yield f"<title>{_text(title)}</title><style>{_STYLE}</style>"
    yield (
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#5f6368"/>'
        "</marker></defs>"
    )
    yield '<rect width="100%" height="100%" fill="white" style="stroke:none"/>'
    yield f'<text class="name" x="20" y="30">{_text(title)}</text>'
    for line in drawn.lines:
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in line)
        yield f'<polyline points="{points}" marker-end="url(#arrow)"/>'
    for box, placed in zip(flow.boxes, drawn.boxes, strict=True):
        yield from _svg_box(box.kind, texts_of(box), placed)
    yield "</svg>"


def _svg_box(kind: str, texts: list[str], placed: Rectangle) -> Iterator[str]:
    radius = 4 if kind == "module" else 12
    yield (
        f'<g class="{kind}"><rect x="{placed.x:.1f}" y="{placed.y:.1f}" '
        f'width="{placed.width:.1f}" height="{placed.height:.1f}" rx="{radius}" '
        f'fill="{_FILLS[kind]}"/>'
    )
    for number, text in enumerate(texts):
        y = placed.y + PADDING + LINE * (number + 0.75)
        bold = "" if number else ' class="title"'
        yield (
            f'<text{bold} x="{placed.middle:.1f}" y="{y:.1f}" text-anchor="middle">'
            f"{_text(text)}</text>"
        )
    yield "</g>"


def _text(text: str) -> str:
    """Return ``text`` for XML, without control characters."""
    return escape("".join(c if c.isprintable() else "\ufffd" for c in text))


def dot_of(flow: Flow) -> str:
    """Return a flow as Graphviz source."""
    lines = ["digraph model {", f"  label={_quoted(flow.title)}; labelloc=t;"]
    lines.append('  node [shape=box, style="rounded,filled", fontname=monospace];')
    for number, box in enumerate(flow.boxes):
        label = _quoted("\n".join(texts_of(box)))
        lines.append(f'  n{number} [label={label}, fillcolor="{_FILLS[box.kind]}"];')
    lines += [f"  n{source} -> n{target};" for source, target in flow.edges]
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{"".join(c if c.isprintable() else chr(0xFFFD) for c in escaped)}"'


_WRITERS = {".svg": svg_of, ".dot": dot_of}
