"""Cases of passes: models as text, and the result of a pass.

A file holds cases of one form::

    == what the case is about
    case (float[N, 3] x) => (float[N, 4] y) <float[3, 4] w> {
      product = MatMul(x, w)
      y = Identity(product)
    }
    --
    y = MatMul(x, w)

A value in ``<>`` that no node makes is a stored weight with random contents. The
listing names operators, attributes that are not the default, and operands; a last line
names the outputs where no node makes them.
"""

import re
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
from onnx import ModelProto, numpy_helper

from burn import Tensor
from burn.backend.cpu import HOST
from burn_import.frontends.onnx.reader import read
from burn_ir import Graph, build
from burn_ir.dim import bind, symbols
from burn_ir.evaluate import evaluate
from burn_ir.graph import Node
from burn_ir.types import Type

FOLDER = Path(__file__).parent
HEADER = '<ir_version: 10, opset_import: ["": 24, "burn": 1, "com.microsoft": 1]>\n'
#: Two values for every symbol, all different and none 1.
SIZES = ((2, 5, 7, 11), (3, 4, 9, 6))


@dataclass(frozen=True)
class Case:
    """A model, and the listing of the nodes that the pass of its file leaves."""

    file: str
    title: str
    model: str
    expected: str

    @property
    def id(self) -> str:
        return f"{self.file}: {self.title}"

    def doubled(self) -> str:
        """Return the model in float64, unless it tests half types beside float32."""
        if "float16" in self.model:
            return self.model
        model = re.sub(r"\bto = 1\b", "to = 11", self.model)
        return re.sub(r"\bfloat\b", "double", model)


def cases(file: str) -> list[Case]:
    """Return the cases in the file of a pass."""
    text = (FOLDER / f"{file}.txt").read_text("utf-8")
    matches = []
    for part in re.split(r"^== ", text, flags=re.M)[1:]:
        title, _, rest = part.partition("\n")
        model, _, expected = rest.partition("\n--\n")
        matches.append(Case(file, title.strip(), model, expected.strip()))
    return matches


def graph_of(text: str) -> Graph:
    """Return the typed graph of a model written as text, with random weights."""
    model = onnx.parser.parse_model(HEADER + text)
    _store_weights(model)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(model.SerializeToString())
        return build(read(path))


def _store_weights(model: ModelProto) -> None:
    graph = model.graph
    given = {i.name for i in graph.initializer} | {i.name for i in graph.input}
    given |= {name for node in graph.node for name in node.output}
    given |= {o.name for o in graph.output}
    for info in [i for i in graph.value_info if i.name not in given]:
        tensor = info.type.tensor_type
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        shape = tuple(d.dim_value for d in tensor.shape.dim)
        array = random_array(np.dtype(dtype), shape, zlib.crc32(info.name.encode()))
        graph.initializer.append(numpy_helper.from_array(array, info.name))
        graph.value_info.remove(info)


def random_array(
    dtype: np.dtype[Any], shape: tuple[int, ...], seed: int
) -> np.ndarray[Any, Any]:
    """Return random contents; integers are from -3 to 3."""
    rng = np.random.default_rng(seed)
    if dtype == np.bool_:
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.kind in "iu":
        return rng.integers(-3 if dtype.kind == "i" else 0, 4, shape).astype(dtype)
    return np.asarray(rng.normal(size=shape)).astype(dtype)


def arguments(graph: Graph, sizes: tuple[int, ...], seed: int) -> list[Tensor]:
    """Return random inputs; ``sizes`` are the values of symbolic extents."""
    names: dict[str, int] = {}
    matches = []
    for number, name in enumerate(graph.inputs):
        given = graph.types[name]
        for dim in given.dims:
            for symbol in symbols(dim):
                names.setdefault(symbol, sizes[len(names) % len(sizes)])
        shape = tuple(int(bind(dim, names)) for dim in given.dims)
        array = random_array(given.dtype, shape, seed * 100 + number)
        matches.append(Tensor(array, HOST))
    return matches


def results(graph: Graph, inputs: list[Tensor]) -> list[np.ndarray[Any, Any]]:
    """Return the outputs of a graph."""
    with np.errstate(all="ignore"):
        return [np.asarray(value.numpy()) for value in evaluate(graph, inputs)]


def runs(graph: Graph) -> Iterator[list[Tensor]]:
    """Yield inputs of two sizes, two of each, so that bool inputs have both values."""
    for sizes in SIZES:
        for seed in (1, 2, 3):
            yield arguments(graph, sizes, seed)


def same_values(before: Graph, after: Graph, tolerance: float) -> None:
    """Compare the outputs of two graphs.

    Without a tolerance they must be equal except for the sign of zero.
    """
    assert before.outputs == after.outputs
    assert before.inputs == after.inputs
    check(after)
    for inputs in runs(before):
        expected, got = results(before, inputs), results(after, inputs)
        for name, a, b in zip(before.outputs, expected, got, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape), name
            if tolerance and a.dtype.kind == "f":
                error = max(tolerance, 8e-3) if a.dtype == np.float16 else tolerance
                np.testing.assert_allclose(a, b, error, error, err_msg=name)
            else:
                np.testing.assert_array_equal(a, b, err_msg=name)


def check(graph: Graph) -> None:
    """Check that values are defined once and before use, and that bodies are closed."""
    created = set(graph.inputs)
    assert len(created) == len(graph.inputs)
    for node in graph.nodes:
        for name in node.inputs:
            assert name is None or name in created or name in graph.constants, name
        for body in node.op.bodies().values():
            check(body)
        names = {name for name in node.outputs if name is not None}
        assert created.isdisjoint(names), names
        created |= names
        for name in names:
            assert isinstance(graph.type(name), Type)
    assert all(name in created or name in graph.constants for name in graph.outputs)


def listing(graph: Graph) -> str:
    """Return the nodes of a graph in the notation of the case files."""
    lines = [line for node in graph.nodes for line in _lines(node)]
    created = {name for node in graph.nodes for name in node.outputs}
    if not created.issuperset(graph.outputs):
        lines.append("=> " + ", ".join(graph.outputs))
    return "\n".join(lines)


def _lines(node: Node) -> Iterator[str]:
    outputs = [name or "_" for name in node.outputs]
    while outputs[-1] == "_":
        outputs.pop()
    attrs = ", ".join(f"{k}={v}" for k, v in _unusual(node).items())
    shown = f"<{attrs}>" if attrs else ""
    operands = ", ".join(name or "_" for name in node.inputs)
    yield f"{', '.join(outputs)} = {node.op.onnx}{shown}({operands})"
    for name, body in sorted(node.op.bodies().items()):
        yield f"  {name}({', '.join(body.inputs)})"
        yield from (f"    {line}" for line in listing(body).splitlines())


def _unusual(node: Node) -> Mapping[str, Any]:
    defaults = {
        f.name: None if f.default is MISSING else f.default
        for f in fields(node.op)  # type: ignore[arg-type]
    }
    return {
        k: v
        for k, v in node.op.attrs().items()
        if not isinstance(v, Graph) and k != "results" and str(v) != str(defaults[k])
    }
