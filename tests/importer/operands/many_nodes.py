"""Models of many independent nodes, each on its own operands, stored or given.

One model holds all cases of a sweep, so that a sweep costs one import and not one for
each case.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

import burn
from burn import Tensor, dtypes
from burn.backend.cpu import Cpu
from burn_import.compiler import compile_graph
from burn_import.frontends.onnx.reader import read
from burn_import.options import Options
from burn_ir import build, evaluate
from tests.laws import oracle
from tests.laws.compare import COARSE
from tests.laws.emitted import printed_model
from tests.modules import Array


@dataclass(frozen=True)
class Operand:
    """An array that a model stores, or is called with."""

    array: Array
    is_stored: bool = False


@dataclass(frozen=True)
class NodeCase:
    """One node: its operator, its operands (None is left out), its attributes."""

    op: str
    operands: tuple[Operand | None, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    outputs: int = 1
    domain: str = ""

    @property
    def title(self) -> str:
        """The node as it is shown where it fails."""
        shown = [
            (
                "_"
                if x is None
                else f"{'stored' if x.is_stored else 'input'} "
                f"{dtypes.name_of(x.array.dtype)}{list(x.array.shape)}"
            )
            for x in self.operands
        ]
        return f"{self.op}({', '.join(shown)}) {dict(self.attrs)}"


def model_of(
    cases: Sequence[NodeCase], opset: int = 21
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """The model that has a node for each case, and the arrays of its inputs."""
    nodes, stored, inputs = [], [], []
    feeds: dict[str, Array] = {}
    for number, case in enumerate(cases):
        names = []
        for index, x in enumerate(case.operands):
            name = "" if x is None else f"x{number}_{index}"
            names.append(name)
            if x is None:
                continue
            if x.is_stored:
                stored.append(numpy_helper.from_array(x.array, name))
                continue
            element = helper.np_dtype_to_tensor_dtype(x.array.dtype)
            inputs.append(helper.make_tensor_value_info(name, element, x.array.shape))
            feeds[name] = x.array
        outputs = [f"y{number}_{i}" for i in range(case.outputs)]
        nodes.append(
            helper.make_node(
                case.op, names, outputs, domain=case.domain, **dict(case.attrs)
            )
        )
    results = [name for node in nodes for name in node.output]
    graph = helper.make_graph(nodes, "main", inputs, [], stored)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in results)
    return proto, feeds


def read_graph(proto: onnx.ModelProto, folder: Path) -> Any:
    """The typed graph of a model."""
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return build(read(path))


def declare_outputs(proto: onnx.ModelProto, graph: Any) -> None:
    """Give the outputs of ``proto`` the dtypes that ``graph`` has inferred."""
    for info in proto.graph.output:
        element = helper.np_dtype_to_tensor_dtype(graph.type(info.name).dtype)
        info.type.tensor_type.elem_type = element


def results_of_others(proto: onnx.ModelProto, feeds: Any) -> list[Any] | None:
    """Return the results of onnxruntime, else of ONNX's reference, else None."""
    results = oracle.by_onnxruntime(proto, feeds)
    return oracle.by_reference(proto, feeds) if results is None else results


def results_of_ours(graph: Any, feeds: Mapping[str, Array]) -> Iterator[Any]:
    """Pairs of a way to compute the model, and its results."""
    inputs = [Tensor(feeds[name], Cpu()) for name in graph.inputs]
    yield "lower", evaluate(graph, inputs)
    for passes in ((), None):
        source = compile_graph(graph, Options(passes=passes), "net.safetensors")
        model: Any = printed_model(source)
        shown = "all passes" if passes is None else "no passes"
        yield f"source, {shown}", as_list(model(*inputs))
        plan = burn.compile(model)
        for call in (1, 2):
            yield f"compiled, {shown}, call {call}", as_list(plan(*inputs))


def as_list(results: Any) -> list[Any]:
    """The results of a model as a list."""
    return list(results) if isinstance(results, tuple) else [results]


def check(cases: Sequence[NodeCase], folder: Path, opset: int = 21) -> None:
    """Fail unless all cases give what others compute: dtypes, shapes and values."""
    proto, feeds = model_of(cases, opset)
    graph = read_graph(proto, folder)
    declare_outputs(proto, graph)
    expected = results_of_others(proto, feeds)
    for name, actual in zip(graph.outputs, expected or [], strict=False):
        inferred = graph.type(name).shape
        is_static = inferred is not None and all(isinstance(d, int) for d in inferred)
        assert not is_static or inferred == np.shape(actual), f"{name}: {inferred}"
    titles = [case.title for case in cases for _ in range(case.outputs)]
    wrong: dict[str, str] = {}
    for way, values in results_of_ours(graph, feeds):
        actual = [value.numpy() for value in values]
        expected = actual if expected is None else expected
        for title, a, b in zip(titles, actual, expected, strict=True):
            difference = difference_of(a, np.asarray(b))
            if difference:
                wrong.setdefault(title, f"{way}: {difference}")
    assert not wrong, "\n".join(f"{title}: {text}" for title, text in wrong.items())


def difference_of(a: Array, b: Array) -> str:
    """Return the difference of ``a`` and ``b`` in dtype, shape or values, else ""."""
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        kinds = [f"{dtypes.name_of(x.dtype)}{list(x.shape)}" for x in (b, a)]
        return f"expected {kinds[0]}, got {kinds[1]}"
    error = COARSE.get(a.dtype, 1e-5) if dtypes.is_float(a.dtype) else 0.0
    one, other = (x.astype(np.float64) if error else x for x in (a, b))
    close = np.isclose(one, other, error, error / 10, equal_nan=bool(error))
    return "" if np.all(close) else f"expected {b.tolist()}, got {a.tolist()}"
