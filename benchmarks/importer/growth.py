"""Measures how the time of an import grows with the number of nodes.

    python -m benchmarks.importer.growth [NAME ...] [--nodes 2000] [--factor 10]

Every graph is imported at two sizes, its module's text compiled by Python included,
each in a process of its own. The last column says how much longer the larger one takes;
imports of linear cost take ``--factor`` times as long, or less.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from benchmarks.cases import Children, print_table

HEAD = ("graph", "nodes", "seconds", "nodes", "seconds", "ratio")
#: What a process does, which prints its own seconds: the start of Python is not meant.
IMPORT = """
import sys, time
import burn_import.compiler, burn_import.frontends.onnx, black
from burn_import.pipeline import import_model
start = time.process_time()
text = import_model(sys.argv[1]).text
compile(text, "model.py", "exec")
print(time.process_time() - start)
"""
WIDTH = 4
RNG = np.random.default_rng(0)


class Draft:
    """A model of ``x`` float32[batch, 4] that is written node by node."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.stored: list[TensorProto] = []
        self.inputs: list[str] = ["x"]
        self.outputs: list[str] = []

    def add(self, kind: str, *inputs: str, name: str = "", **attrs: Any) -> str:
        """The output's name of a new node."""
        output = f"v{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(kind, list(inputs), [output], name=name, **attrs)
        )
        return output

    def store(self, name: str, *shape: int) -> str:
        """The name of a new weight."""
        array = RNG.standard_normal(shape).astype(np.float32)
        self.stored.append(numpy_helper.from_array(array, name))
        return name

    def numbers(self, name: str, *values: int) -> str:
        """The name of a new vector of integers."""
        self.stored.append(numpy_helper.from_array(np.array(values), name))
        return name

    def save(self, path: Path) -> None:
        """Write the model to ``path``."""
        float_ = TensorProto.FLOAT
        graph = helper.make_graph(
            self.nodes,
            "growth",
            [
                helper.make_tensor_value_info(name, float_, ["batch", WIDTH])
                for name in self.inputs
            ],
            [helper.make_empty_tensor_value_info(name) for name in self.outputs],
            self.stored,
        )
        opsets = [helper.make_opsetid("", 17)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


def chain(draft: Draft, count: int) -> None:
    """Nodes without names, one after the other."""
    x, kinds = "x", ("Relu", "Neg", "Sigmoid", "Abs", "Tanh")
    for number in range(count):
        x = draft.add(kinds[number % len(kinds)], x)
    draft.outputs = [x]


def wide(draft: Draft, count: int) -> None:
    """Nodes side by side, whose results are put together by one."""
    weight = [draft.store(f"w{number}", WIDTH) for number in range(8)]
    parts = [
        draft.add("Mul", draft.add("Neg", "x"), weight[number % 8])
        for number in range(count // 2)
    ]
    draft.outputs = [draft.add("Concat", *parts, axis=1)]


def several(draft: Draft, count: int) -> None:
    """Each node an input and an output of its own."""
    draft.inputs = [f"x{number}" for number in range(count)]
    draft.outputs = [draft.add("Relu", name) for name in draft.inputs]


def stored(draft: Draft, count: int) -> None:
    """A weight for every node."""
    x = "x"
    for number in range(count):
        x = draft.add("Add", x, draft.store(f"w{number}", WIDTH))
    draft.outputs = [x]


def layers(draft: Draft, count: int) -> None:
    """Layers with names and weights, normalized, with a residual connection."""
    x = "x"
    for number in range(count // 8):
        path, key = f"/blocks.{number}/", f"blocks.{number}."
        weight = draft.store(f"{key}linear.weight", WIDTH, WIDTH)
        y = draft.add("MatMul", x, weight, name=f"{path}linear/MatMul")
        bias = draft.store(f"{key}linear.bias", WIDTH)
        y = draft.add("Add", y, bias, name=f"{path}linear/Add")
        y = draft.add("Sigmoid", y, name=f"{path}act/Sigmoid")
        mean = draft.add("ReduceMean", y, axes=[1], name=f"{path}norm/ReduceMean")
        y = draft.add("Sub", y, mean, name=f"{path}norm/Sub")
        scale = draft.store(f"{key}norm.weight", WIDTH)
        y = draft.add("Mul", y, scale, name=f"{path}norm/Mul")
        y = draft.add("Relu", y, name=f"{path}Relu")
        x = draft.add("Add", x, y, name=f"{path}Add")
    draft.outputs = [x]


def extents(draft: Draft, count: int) -> None:
    """Shapes that are read, computed with and used."""
    x = "x"
    one, first, last = (
        draft.numbers("a", 1),
        draft.numbers("b", 0),
        draft.numbers("c", -1),
    )
    for _ in range(count // 6):
        size = draft.add("Gather", draft.add("Shape", x), first, axis=0)
        size = draft.add("Concat", size, one, last, axis=0)
        y = draft.add("Reshape", x, size)
        y = draft.add("Squeeze", y, one)
        x = draft.add("Relu", y)
    draft.outputs = [x]


def mesh(draft: Draft, count: int) -> None:
    """Every node reads the one before it, and one from anywhere before that."""
    results = ["x"]
    for number in range(count):
        other = results[int(RNG.integers(len(results)))]
        results.append(draft.add(("Add", "Mul", "Sub")[number % 3], results[-1], other))
    draft.outputs = results[-1:]


def branches(draft: Draft, count: int) -> None:
    """One If after the other, each with two short branches."""
    x = "x"
    condition = draft.numbers("zero", 0)
    for number in range(count // 6):
        size = draft.add("Gather", draft.add("Shape", x), condition, axis=0)
        test = draft.add("Greater", size, condition)
        sides = {}
        for side, kind in (("then_branch", "Relu"), ("else_branch", "Tanh")):
            name = f"{side}{number}"
            node = helper.make_node(kind, [x], [name])
            output = helper.make_empty_tensor_value_info(name)
            sides[side] = helper.make_graph([node], side, [], [output])
        x = draft.add("If", test, **sides)
    draft.outputs = [x]


def constants(draft: Draft, count: int) -> None:
    """A node that holds a constant for every one that uses it."""
    x = "x"
    for _ in range(count // 2):
        value = numpy_helper.from_array(RNG.standard_normal(WIDTH).astype(np.float32))
        x = draft.add("Add", x, draft.add("Constant", value=value))
    draft.outputs = [x]


def dead(draft: Draft, count: int) -> None:
    """Nodes that nothing reads, and many that compute the same."""
    x = draft.add("Relu", "x")
    for number in range(count):
        y = draft.add("Neg", x)
        if number % 2:
            x = draft.add("Exp", y)
    draft.outputs = [x]


GRAPHS: dict[str, Callable[[Draft, int], None]] = {
    function.__name__: function
    for function in (
        *(chain, wide, several, stored, layers, extents, mesh, branches, constants),
        dead,
    )
}


def main() -> None:
    """Print a table of imports at two sizes."""
    parser = argparse.ArgumentParser(description="Measures how imports grow.")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(GRAPHS)}")
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--factor", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        children = Children(Path(folder))
        rows = (
            row(name, children, Path(folder), options)
            for name in options.names or GRAPHS
        )
        print_table(HEAD, rows)


def row(
    name: str, children: Children, folder: Path, options: argparse.Namespace
) -> list[str]:
    """One line of the table: the best of some rounds at each size."""
    results, taken = [], []
    for count in (options.nodes, options.nodes * options.factor):
        draft = Draft()
        GRAPHS[name](draft, count)
        path = folder / f"{name}.onnx"
        draft.save(path)
        rounds = range(options.rounds)
        taken.append(min(float(children.printed(IMPORT, str(path))) for _ in rounds))
        results += [str(len(draft.nodes)), f"{taken[-1]:.2f}"]
    return [name, *results, f"{taken[1] / taken[0]:.1f}"]


if __name__ == "__main__":
    main()
