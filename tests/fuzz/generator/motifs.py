"""Groups of nodes that exporters write and passes look for, with small changes.

They are the cases of the passes' tests. A changed one (another constant, swapped
operands, another operator) is one that a pass may wrongly take for the original.
"""

import zlib
from functools import cache

import numpy as np
import onnx
import onnx.parser
from onnx import GraphProto, NodeProto, helper, numpy_helper

from burn_import.passes import PASSES
from tests.fuzz.generator.builder import Builder
from tests.fuzz.generator.trial import Rejected
from tests.fuzz.generator.values import Array, Value
from tests.importer.passes.cases import HEADER, cases, random_array

#: Operators that may stand for each other in a changed motif.
ALIKE = (
    ("Add", "Sub", "Mul", "Div", "Max", "Min"),
    ("Tanh", "Sigmoid", "Relu", "Exp", "Erf", "Neg", "Sqrt", "Abs", "Identity"),
    ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceSumSquare"),
    ("Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal"),
)


@cache
def motif_texts() -> tuple[str, ...]:
    """The models of all cases, as text."""
    return tuple(case.model for apply in PASSES for case in cases(apply.__name__))


@cache
def motif(place: int) -> GraphProto:
    """The graph of one case.

    Raises:
        Rejected: it uses operators of our own.
    """
    graph = onnx.parser.parse_model(HEADER + motif_texts()[place]).graph
    if any(node.domain for node in graph.node):
        raise Rejected("a motif of another domain")
    return graph


def add_motif(builder: Builder) -> None:
    """Add the nodes of a random case.

    Raises:
        Rejected: they do not run at this opset or with these operands.
    """
    graph = motif(builder.random.randrange(len(motif_texts())))
    snapshot = builder.snapshot()
    try:
        _add(builder, graph)
    except Rejected:
        builder.restore(snapshot)
        raise


def _add(builder: Builder, graph: GraphProto) -> None:
    rng = builder.random
    names: dict[str, str] = {"": ""}
    symbols: dict[str, str] = {}
    for tensor in graph.initializer:
        array = numpy_helper.to_array(tensor)
        names[tensor.name] = builder.add_constant(_changed(builder, array)).name
    for info in graph.input:
        names[info.name] = _input(builder, info, symbols).name
    result = {n for node in graph.node for n in node.output} | names.keys()
    for info in graph.value_info:
        if info.name not in result:
            names[info.name] = builder.add_constant(_weight(info)).name
    nodes, results = _copied(builder, graph, names)
    if rng.random() < 0.4:
        _change(builder, nodes)
    builder.try_nodes(nodes, results)
    hidden = set(results) - {names[o.name] for o in graph.output}
    if rng.random() < 0.7:  # most are read by the motif alone
        builder.pool = [v for v in builder.pool if v.name not in hidden]


def _copied(
    builder: Builder, graph: GraphProto, names: dict[str, str]
) -> tuple[list[NodeProto], list[str]]:
    nodes, results = [], []
    for original in graph.node:
        if any(a.HasField("g") for a in original.attribute):
            raise Rejected("a motif with bodies")
        node = NodeProto()
        node.CopyFrom(original)
        node.input[:] = [names[n] for n in original.input]
        for name in original.output:
            if name and name not in names:
                names[name] = builder.shared.fresh()
        node.output[:] = [names[n] for n in original.output]
        results += [n for n in node.output if n]
        nodes.append(node)
    return nodes, results


def _weight(info: onnx.ValueInfoProto) -> Array:
    tensor = info.type.tensor_type
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    shape = tuple(d.dim_value for d in tensor.shape.dim)
    return random_array(dtype, shape, zlib.crc32(info.name.encode()))


def _input(
    builder: Builder, info: onnx.ValueInfoProto, symbols: dict[str, str]
) -> Value:
    """A value of the graph like an input of a motif, or a new input."""
    rng = builder.random
    tensor = info.type.tensor_type
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    values = builder.shared.symbols
    dims: list[int | str] = []
    for d in tensor.shape.dim:
        if d.dim_param:
            dims.append(symbols.setdefault(d.dim_param, rng.choice(list(values))))
        else:
            dims.append(d.dim_value)
    sizes = [[d if isinstance(d, int) else values[d][k] for d in dims] for k in (0, 1)]

    def fits(value: Value) -> bool:
        if not value.is_tensor or value.dtype != dtype:
            return False
        shapes = value.shapes
        return list(shapes[0]) == sizes[0] and list(shapes[2]) == sizes[1]

    result = builder.choose(fits)
    if result is not None and rng.random() < 0.7:
        return result
    array = random_array(dtype, tuple(sizes[0]), rng.randrange(2**31))
    return builder.add_input(array, dims)


def _changed(builder: Builder, array: Array) -> Array:
    """``array``, seldom with another first element."""
    if array.dtype.kind != "f" or not array.size or builder.random.random() < 0.9:
        return array
    changed = array.copy()
    changed.flat[0] *= builder.random.choice([0.5, 2.0, -1.0, 1.001])
    return changed


def _change(builder: Builder, nodes: list[NodeProto]) -> None:
    """Change one node of a motif: its operator, its operands, or its constant."""
    rng = builder.random
    node = rng.choice(nodes)
    for group in ALIKE:
        if node.op_type in group and rng.random() < 0.5:
            node.op_type = rng.choice(group)
            return
    if node.op_type == "Constant":
        for attribute in node.attribute:
            if attribute.HasField("t"):
                array = numpy_helper.to_array(attribute.t)
                changed = _changed(builder, array)
                attribute.t.CopyFrom(numpy_helper.from_array(changed))
    elif len(node.input) == 2:
        node.input[:] = list(node.input)[::-1]
    for attribute in node.attribute:
        if attribute.name == "axis" and rng.random() < 0.5:
            attribute.i = rng.choice([-2, -1, 0, 1, 2])
