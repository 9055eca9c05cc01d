"""Drawings of ``inspect --graph``: contents, layout, limits and refusals."""

import json
import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from burn_import.drawing.files import dot_of, svg_of
from burn_import.drawing.flow import MOST_BOXES, Flow, FlowBox, flow_of
from burn_import.drawing.layout import CHARACTER, Layout, Rectangle, layout
from burn_import.pipeline import assemble_model
from tests.cli.commands import run
from tests.importer.onnx_files import graph, model, saved, stored
from tests.test_house import ROOT

DIGITS = ROOT / "models" / "digits" / "digits.onnx"
GOLDEN = ROOT / "tests" / "golden"
SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[list[str]]:
    """Return the lines of text of each box in an image."""
    root = ElementTree.fromstring(svg)
    groups = root.findall(f"{SVG}g")
    return [[str(text.text) for text in g.findall(f"{SVG}text")] for g in groups]


def links(flow: Flow) -> set[tuple[str, str]]:
    """Return the edges of a flow as pairs of titles."""
    return {(flow.boxes[a].title, flow.boxes[b].title) for a, b in flow.edges}


def assert_apart(drawn: Layout) -> None:
    """Assert that no two boxes overlap, and no edge crosses a box."""
    rows: dict[float, list[Rectangle]] = {}
    for box in drawn.boxes:
        assert box.x >= 0 and box.x + box.width <= drawn.width
        assert box.y >= 0 and box.y + box.height <= drawn.height
        rows.setdefault(box.y, []).append(box)
    ends = [(y, y + max(b.height for b in row)) for y, row in sorted(rows.items())]
    assert all(end < start for (_, end), (start, _) in pairwise(ends))
    for row in rows.values():
        ordered = sorted(row, key=lambda box: box.x)
        assert all(a.x + a.width < b.x for a, b in pairwise(ordered))
    for line in drawn.lines:
        for (x, y), (other, below) in pairwise(line):
            for box in rows.get(y, ()) if x == other else ():
                is_beside = x < box.x or x > box.x + box.width
                assert is_beside or below <= box.y or y >= box.y + box.height


def test_the_modules_of_a_model_are_drawn(tmp_path: Path) -> None:
    path = tmp_path / "new" / "net.svg"
    answer = run("inspect", DIGITS, "--graph", path)
    assert answer.exit_code == 0, answer.output
    assert answer.stdout == f"wrote {path}\n7 boxes, modules to depth 2\n"
    boxes = texts(path.read_text("utf-8"))
    assert boxes[0] == ["image", "float32[batch, 1, 8, 8]"]
    conv = ["block.conv", "Conv2d", "4,608 parameters", "float32[batch, 32, 8, 8]"]
    assert conv in boxes
    assert boxes[-1] == ["logits", "float32[batch, 10]"]
    title = ElementTree.parse(path).getroot().find(f"{SVG}title")
    assert title is not None and title.text == "Digits (modules to depth 2)"


def test_the_depth_is_chosen(tmp_path: Path) -> None:
    assembled = assemble_model(DIGITS)
    titles = [[box.title for box in flow_of(assembled, n).boxes] for n in (0, 1)]
    assert titles == [
        ["image", "(model)", "logits"],
        ["image", "stem", "block", "head", "logits"],
    ]
    lines = flow_of(assembled, 0).boxes[1].lines
    assert lines == ("Digits", "10,074 parameters", "float32[batch, 10]")
    path = tmp_path / "net.svg"
    answer = run(
        *("inspect", DIGITS, "--graph", path, "--depth", "1", "--format", "json")
    )
    facts = json.loads(answer.stdout)
    assert (facts["boxes"], facts["depth"], facts["path"]) == (5, 1, str(path))


def test_branches_join_and_edges_go_around_boxes() -> None:
    flow = flow_of(assemble_model(GOLDEN / "transformer" / "model.onnx"))
    titles = [box.title for box in flow.boxes]
    assert titles.count("Add") == 4
    (first,) = [box.title for box in flow.boxes if box.kind == "input"]
    assert (first, "Add") in links(flow)
    assert all(source < target for source, target in flow.edges)
    assert_apart(layout(flow))


@pytest.mark.parametrize(
    "name", ["residual", "nested_if", "shared", "lstm", "loops", "hostile", "recurrent"]
)
@pytest.mark.parametrize("depth", [0, 1, 5])
def test_every_kind_of_module_is_drawn(name: str, depth: int) -> None:
    flow = flow_of(assemble_model(GOLDEN / name / "model.onnx"), depth)
    assert_apart(layout(flow))
    boxes = texts(svg_of(flow))
    assert len(boxes) == len(flow.boxes)
    assert not any("\0" in line for box in boxes for line in box)
    used = {position for edge in flow.edges for position in edge}
    outputs = {n for n, box in enumerate(flow.boxes) if box.kind == "output"}
    assert outputs and outputs <= used


def layered(path: Path, layers: int) -> Path:
    """Write a model of blocks, each of four linear layers and an addition."""
    nodes, weights, value = [], [], "x"
    for number in range(layers):
        inner = value
        for part in "qkvo":
            name = f"blocks.{number}.{part}.weight"
            weights.append(stored(name, np.eye(4, dtype=np.float32)))
            result = f"{part}{number}"
            nodes.append(
                helper.make_node(
                    *("Gemm", [inner, name], [result], f"/blocks.{number}/{part}/Gemm"),
                    transB=1,
                )
            )
            inner = result
        total = f"a{number}" if number < layers - 1 else "y"
        add = helper.make_node("Add", [value, inner], [total], f"/blocks.{number}/Add")
        nodes.append(add)
        value = total
    return saved(
        path, model(graph(nodes, {"x": ["batch", 4]}, initializers=tuple(weights)))
    )


def test_a_large_model_is_drawn_to_a_depth_of_few_boxes(tmp_path: Path) -> None:
    net, path = layered(tmp_path / "net.onnx", 60), tmp_path / "net.svg"
    assembled = assemble_model(net)
    flow = flow_of(assembled)
    assert 60 <= len(flow.boxes) <= MOST_BOXES < flow.deeper
    deeper = flow_of(assembled, flow.depth + 1)
    assert (len(deeper.boxes), deeper.deeper) == (flow.deeper, 0)
    assert_apart(layout(deeper))
    answer = run("inspect", net, "--graph", path)
    assert answer.stdout.splitlines() == [
        f"wrote {path}",
        f"{len(flow.boxes)} boxes, modules to depth {flow.depth}",
        f"pass --depth {flow.depth + 1} to draw {flow.deeper} boxes",
    ]


def test_layouts_of_thousands_of_boxes_are_apart() -> None:
    flow = Flow("net", 1)
    random = np.random.default_rng(0)
    for number in range(3000):
        reach = range(max(0, number - 20), number)
        sources: Any = random.choice(reach, min(2, len(reach)), False) if number else []
        flow.add(FlowBox("module", f"part{number}", ("Part",)), map(int, sources))
    assert_apart(layout(flow))


def test_wide_characters_have_room() -> None:
    flow = Flow("net", 1)
    for title in ("abcd", "\u5c64\u5c64\u5c64\u5c64"):
        flow.add(FlowBox("module", title), ())
    narrow, wide = layout(flow).boxes
    assert wide.width - narrow.width == pytest.approx(4 * CHARACTER)


def test_names_are_escaped() -> None:
    flow = Flow('<&">', 1)
    name = '</text><script>"&\x1b\\'
    box = flow.add(FlowBox("module", name, ("a" * 500,)), ())
    flow.add(FlowBox("output", "y"), [box])
    first, second = texts(svg_of(flow))
    assert first[0] == '</text><script>"&\ufffd\\' and second == ["y"]
    assert len(first[1]) <= 48 and "..." in first[1]
    label = dot_of(flow).splitlines()[3]
    assert label.startswith('  n0 [label="</text><script>\\"&\ufffd\\\\\\n')
    assert "n0 -> n1;" in dot_of(flow)


REFUSED: tuple[tuple[Any, int, str], ...] = (
    (("--graph", "net.png"), 2, "expected a drawing that ends in .svg or .dot"),
    (("--graph", "old.svg"), 2, "Pass --force to replace it, or another name."),
    (("--depth", "1"), 2, "expected --graph FILE with --depth and --force"),
    (("--graph", "net.svg", "--size", "batch=2"), 2, "one of --graph and --size"),
    (("--graph", "net.svg", "--depth", "-1"), 2, "-1 is not in the range"),
)


@pytest.mark.parametrize(("given", "code", "text"), REFUSED)
def test_mistakes_are_answered(
    given: Any, code: int, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("old.svg").write_text("mine")
    answer = run("inspect", DIGITS, *given)
    assert (answer.exit_code, answer.stdout) == (code, "")
    assert text in answer.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["old.svg"]
    assert Path("old.svg").read_text() == "mine"


def test_force_replaces_a_file_and_weights_have_no_drawing(tmp_path: Path) -> None:
    path = tmp_path / "net.dot"
    path.write_text("old")
    answer = run("inspect", DIGITS, "--graph", path, "--force")
    assert answer.exit_code == 0 and path.read_text().startswith("digraph model {")
    assert run(DIGITS, "-o", tmp_path / "net.py").exit_code == 0
    answer = run("inspect", tmp_path / "net.safetensors", "--graph", tmp_path / "x.svg")
    assert answer.exit_code == 4 and "weights and no program" in answer.stderr
