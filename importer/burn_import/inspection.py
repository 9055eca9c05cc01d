"""Facts about a model without running it: layers, weights, operators, costs."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from burn_ir.dim import Dim, bind, symbols
from burn_ir.graph import Graph, Node, nested_nodes
from burn_ir.types import Type

#: Operators that move elements without arithmetic.
_MOVES = frozenset(
    {
        *("Cast", "Concat", "Constant", "ConstantOfShape", "Expand", "Flatten"),
        *("Gather", "Identity", "Pad", "Reshape", "Shape", "Slice", "Split"),
        *("Squeeze", "Tile", "Transpose", "Unsqueeze"),
    }
)


@dataclass(frozen=True)
class LayerRow:
    """A module with weights of its own; sizes in elements and in bytes."""

    path: str
    parameters: int
    bytes: int
    dtypes: str


@dataclass(frozen=True)
class WeightRow:
    """A stored array; ``bytes`` is its size in memory."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int


@dataclass(frozen=True)
class OperatorRow:
    """The nodes of one operator, and whether it can be imported."""

    domain: str
    operator: str
    opset: int
    nodes: int
    status: str


@dataclass(frozen=True)
class Facts:
    """Summary of a model in numbers.

    ``flops`` counts a multiplication and an addition as two; ``peak_bytes`` is the
    largest total size of simultaneously live values; ``unknown`` counts the nodes
    with unknown shapes, which both leave out.
    """

    inputs: dict[str, str]
    outputs: dict[str, str]
    layers: tuple[LayerRow, ...]
    operators: dict[str, int]
    parameters: int
    weight_bytes: int
    flops: int
    peak_bytes: int
    unknown: int


def inspect_model(path: Path, sizes: Mapping[str, int] | None = None) -> Facts:
    """Return the facts of the model in a file.

    Named dimensions have their size in ``sizes``, else 1.

    Raises:
        UnreadableFile, UnsupportedModel, InvalidModel: of the file.
    """
    from burn_import.pipeline import import_model
    from burn_import.sources import read
    from burn_ir import RawModel, UnsupportedModel, build

    raw = read(path)
    if not isinstance(raw, RawModel):
        raise UnsupportedModel(f"{path.name} has weights and no program; see `weights`")
    graph = build(raw)
    _check_names(sizes or {}, graph)
    rows = weight_rows_of(import_model(path).weights)
    counts = Counter(n.op.onnx for top in graph.nodes for n in nested_nodes(top))
    costs = [_flops(graph, node, sizes or {}) for node in graph.nodes]
    return Facts(
        {name: graph.types[name].name for name in graph.arguments},
        {name: str(getattr(graph.type(name), "name", "?")) for name in graph.results},
        tuple(_layers(rows)),
        dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))),
        sum(prod(row.shape) for row in rows),
        sum(row.bytes for row in rows),
        sum(cost for cost in costs if cost is not None),
        _peak(graph, sizes or {}),
        sum(cost is None for cost in costs),
    )


def _check_names(sizes: Mapping[str, int], graph: Graph) -> None:
    from burn_import.verification.errors import check_sizes

    types = {
        name: (kind.dtype, [str(n) for n in kind.shape or () if not isinstance(n, int)])
        for name in graph.arguments
        if isinstance(kind := graph.types[name], Type)
    }
    check_sizes(sizes, types)


def _layers(rows: list[WeightRow]) -> Iterator[LayerRow]:
    groups: dict[str, list[WeightRow]] = {}
    for row in rows:
        groups.setdefault(row.name.rpartition(".")[0], []).append(row)
    for path, weights in groups.items():
        count = sum(prod(row.shape) for row in weights)
        kinds = ", ".join(sorted({row.dtype for row in weights}))
        yield LayerRow(path or "(model)", count, sum(r.bytes for r in weights), kinds)


def _elements(kind: Type | None, sizes: Mapping[str, int]) -> int | None:
    if kind is None or kind.shape is None:
        return None
    return prod(_number(extent, sizes) for extent in kind.shape)


def _number(extent: Dim, sizes: Mapping[str, int]) -> int:
    sizes_of_symbols = {name: sizes.get(name, 1) for name in symbols(extent)}
    return max(int(bind(extent, sizes_of_symbols)), 0)


def _flops(graph: Graph, node: Node, sizes: Mapping[str, int]) -> int | None:
    """Return the FLOPs of a node: two per product, else one per result element."""
    if node.op.onnx in _MOVES:
        return 0
    out = _elements(graph.type(node.outputs[0]), sizes)
    if out is None:
        return None
    kinds = [graph.type(name) for name in node.inputs]
    if node.op.onnx in ("Conv", "ConvTranspose", "ConvInteger") and kinds[1]:
        weight = _elements(kinds[1], sizes)
        image = _elements(kinds[0], sizes)
        if weight is None or image is None or kinds[1].shape is None:
            return None
        channels = _number(kinds[1].shape[0], sizes)
        pixels = image if node.op.onnx == "ConvTranspose" else out
        return 2 * pixels * weight // max(channels, 1)
    if node.op.onnx in ("MatMul", "Gemm", "MatMulInteger"):
        first = kinds[0]
        if first is None or not first.shape:
            return None
        axis = 0 if getattr(node.op, "transA", 0) else -1
        return 2 * out * _number(first.shape[axis], sizes)
    if node.op.onnx in ("LSTM", "GRU", "RNN"):
        steps = _elements(kinds[0], sizes)
        products = [_elements(kind, sizes) for kind in kinds[1:3]]
        if steps is None or None in products or kinds[0] is None or not kinds[0].shape:
            return None
        rows = steps // max(_number(kinds[0].shape[-1], sizes), 1)
        return 2 * rows * sum(p for p in products if p is not None)
    return out


def _peak(graph: Graph, sizes: Mapping[str, int]) -> int:
    """Return the largest total bytes of live values, executing in node order."""
    last = {
        name: i for i, node in enumerate(graph.nodes) for name in node.inputs if name
    }
    last |= dict.fromkeys(graph.outputs, len(graph.nodes))
    live: dict[str, int] = {name: _bytes(graph, name, sizes) for name in graph.inputs}
    peak = total = sum(live.values())
    for number, node in enumerate(graph.nodes):
        results = {n: _bytes(graph, n, sizes) for n in node.outputs if n is not None}
        live |= results
        total += sum(results.values())
        peak = max(peak, total)
        for name in {*results, *filter(None, node.inputs)}:
            if last.get(name, -1) <= number:
                total -= live.pop(name, 0)
    return peak


def _bytes(graph: Graph, name: str, sizes: Mapping[str, int]) -> int:
    kind = graph.type(name)
    count = _elements(kind, sizes)
    return 0 if kind is None or count is None else count * kind.dtype.itemsize


def weight_rows(path: Path) -> list[WeightRow]:
    """Return the weights in a record, a checkpoint, or an imported model.

    Raises:
        UnreadableFile, UnsupportedModel, InvalidModel: of the file.
    """
    from burn_import.file_kinds import FileKind, file_kind
    from burn_import.pipeline import import_model
    from burn_import.weights import is_record_name, opened

    if is_record_name(path) or file_kind(path) is FileKind.WEIGHTS:
        return weight_rows_of(opened(path, None).weights)
    return weight_rows_of(import_model(path).weights)


def weight_rows_of(weights: Any) -> list[WeightRow]:
    """Return a row for each (key, array)."""
    from burn.dtypes import name_of

    return [
        WeightRow(
            key, name_of(a.dtype), tuple(a.shape), prod(a.shape) * a.dtype.itemsize
        )
        for key, a in weights
    ]


def operator_rows(path: Path) -> tuple[list[OperatorRow], list[str]]:
    """Return the operators of an ONNX file and its obstacles to an import.

    Raises:
        UnreadableFile: the file is no ONNX model.
    """
    from burn_import.frontends.onnx import read
    from burn_ir import ModelError, UnreadableFile, build
    from burn_ir.support_check import walk

    try:
        raw = read(path)
    except UnreadableFile:
        raise
    except ModelError as error:
        return [], [str(problem) for problem in error.problems]
    problems: list[Any] = []
    try:
        build(raw)
    except ModelError as error:
        problems = list(error.problems)
    refused = {problem.operator for problem in problems}
    counts = Counter((node.domain, node.op_type) for node in walk(raw.graph))
    rows = [
        OperatorRow(
            *(domain, name, raw.opsets.get(domain, 1), count),
            "not supported" if name in refused else "supported",
        )
        for (domain, name), count in sorted(counts.items())
    ]
    return rows, [str(problem) for problem in problems]


def environment() -> dict[str, str]:
    """Return versions, the CPU engine and the devices, by label."""
    import platform
    from importlib.metadata import PackageNotFoundError, version
    from importlib.util import find_spec

    from burn.backend import engine, kernel_cache
    from burn_import.version import VERSION

    cpu = engine()
    facts = {"burn-import": VERSION, "Python": platform.python_version()}
    facts["platform"] = platform.platform()
    facts["CPU engine"] = f"{cpu.name} {cpu.version}".strip()
    if cpu.path:
        facts["CPU engine file"] = str(cpu.path)
    for number, note in enumerate(cpu.notes, 1):
        facts[f"CPU engine note {number}"] = note
    kernels = kernel_cache()
    size = f"{kernels.folder} ({kernels.size()} bytes)"  # which may refuse the folder
    facts["kernel cache"] = kernels.refusal or size
    names = ("numpy", "onnx", "onnxruntime", "ml_dtypes", "black", "llvmlite", "torch")
    for name in names:
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            facts[name] = "not installed"
    has_cupy = find_spec("cupy") is not None
    facts["CUDA"] = "cupy is installed" if has_cupy else "cupy is not installed"
    return facts
