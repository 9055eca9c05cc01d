"""A whole random graph with its inputs, as ONNX has it."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.fuzz.generator.builder import Builder, Shared, free_names
from tests.fuzz.generator.catalog import FROZEN, add_catalog_node
from tests.fuzz.generator.control import DEEPEST, add_if, add_loop, add_scan
from tests.fuzz.generator.kinds import (
    add_casts,
    add_list_nodes,
    add_optional,
    add_quantized,
    add_stored_bits,
    add_texts,
)
from tests.fuzz.generator.local import DOMAIN, add_function_calls
from tests.fuzz.generator.motifs import add_motif
from tests.fuzz.generator.names import rename
from tests.fuzz.generator.network import grow_network
from tests.fuzz.generator.trial import Rejected, sensitivity, type_proto
from tests.fuzz.generator.values import EXACT, NOISY, OTHER, OTHER_NOISY, Value

OPSETS = range(7, 25)
#: A graph is given up after so many rejected nodes.
MOST_REJECTIONS = 150

Grow = Callable[[Builder], None]


def restored(grow: Grow) -> Grow:
    """``grow``, which leaves nothing behind where it is rejected."""

    def guarded(builder: Builder) -> None:
        snapshot = builder.snapshot()
        try:
            grow(builder)
        except Rejected:
            builder.restore(snapshot)
            raise

    return guarded


def _with_body(add: Callable[[Builder, Callable[[Builder, int], None]], None]) -> Grow:
    def grow(builder: Builder) -> None:
        if builder.depth >= DEEPEST:
            raise Rejected("too deep")
        snapshot = builder.snapshot()
        try:
            add(builder, _grow)
        except Rejected:
            builder.restore(snapshot)
            raise

    return grow


#: What a graph grows by, with the share of each.
GROWTH: list[tuple[Grow, float]] = [
    (add_catalog_node, 1.0),
    (add_motif, 0.15),
    (_with_body(add_if), 0.04),
    (_with_body(add_loop), 0.04),
    (_with_body(add_scan), 0.02),
]
#: The same without cases of passes.
PLAIN_GROWTH = [(grow, share) for grow, share in GROWTH if grow is not add_motif]
#: Values that are no plain tensors, and functions, between other nodes.
TYPES_GROWTH: list[tuple[Grow, float]] = [
    *((grow, share / 3) for grow, share in PLAIN_GROWTH),
    (add_function_calls, 0.3),
    (restored(add_optional), 0.1),
    (restored(add_list_nodes), 0.2),
    (restored(add_texts), 0.2),
    (restored(add_quantized), 0.15),
    (restored(add_casts), 0.1),
    (restored(add_stored_bits), 0.15),
]


@dataclass
class FuzzCase:
    """A model with inputs, and what noise on them does to its outputs.

    ``feeds`` are inputs of two sizes, then those of the first size with NaN and
    infinities. ``noise`` is the largest difference that noise makes, by output.
    ``pieces`` are the outputs of the first two when each node runs alone, if known.
    """

    seed: int
    model: onnx.ModelProto
    feeds: list[dict[str, Any]]
    noise: dict[str, float]
    rejections: dict[str, int] = field(default_factory=dict)
    pieces: list[list[Any]] = field(default_factory=list)
    profile: str = "mixed"

    @property
    def operators(self) -> set[tuple[str, str]]:
        """The operators in the graph and its bodies."""
        return set(_operators(self.model.graph))


def _operators(graph: onnx.GraphProto) -> list[tuple[str, str]]:
    results = []
    for node in graph.node:
        results.append((node.domain, node.op_type))
        for attribute in node.attribute:
            results.extend(_operators(attribute.g) if attribute.HasField("g") else [])
    return results


def generate(seed: int, profile: str = "mixed", most_nodes: int = 60) -> FuzzCase:
    """The random graph of a seed; ``PROFILES`` says what there is.

    Raises:
        KeyError: there is no such profile.
    """
    return PROFILES[profile](seed, profile, most_nodes)


def _mixed(seed: int, profile: str, most_nodes: int) -> FuzzCase:
    """Nodes of all operators, with bodies and cases of passes between them."""
    rng = random.Random(seed)
    builder = Builder(Shared(seed, _opsets(rng)))
    _add_first_inputs(builder)
    _grow(builder, rng.randint(5, most_nodes))
    return _finished(builder, rng, _outputs(builder))


def _operators_alone(seed: int, profile: str, most_nodes: int) -> FuzzCase:
    """Nodes of the operators of a fixed table, each from a random stream of its own."""
    rng = random.Random(f"{profile}:{seed}")
    builder = Builder(Shared(seed, _opsets(rng), profile))
    builder.shared.next_step()
    _add_first_inputs(builder)
    most = rng.randint(5, most_nodes // 2)
    growth = TYPES_GROWTH if profile == "types" else PLAIN_GROWTH
    for _ in range(3 * most):
        if len(builder.nodes) < most:
            builder.shared.next_step()
            grow_by_one(builder, growth)
    builder.shared.next_step()
    return _finished(builder, rng, _outputs(builder))


def _network(seed: int, profile: str, most_nodes: int) -> FuzzCase:
    """Networks of repeated blocks with scopes, as exporters write them."""
    rng = random.Random(f"{profile}:{seed}")
    builder = Builder(Shared(seed, {"": rng.choice(range(9, 25))}, profile))
    builder.shared.next_step()
    builder.shared.symbols = {
        name: (rng.randint(1, 3), rng.randint(1, 4)) for name in "NHW"
    } | {"S": (rng.randint(2, 6), rng.randint(1, 7))}
    grow_network(builder, rng)
    outputs = [v for v in builder.pool if v.origin == "node"]
    kept = [v for v in outputs[:-1] if rng.random() < 0.15]
    return _finished(builder, rng, [*kept, outputs[-1]], renamed=False)


#: What ``generate`` can make. Graphs of "mixed" change with the cases of passes and the
#: strategies of operators; those of the other profiles depend on the generator, and on
#: the strategies of the operators that are in them.
PROFILES: dict[str, Callable[[int, str, int], FuzzCase]] = {
    "mixed": _mixed,
    "operators": _operators_alone,
    "networks": _network,
    "types": _operators_alone,
}


def _opsets(rng: random.Random) -> dict[str, int]:
    opsets = {"": rng.choice(OPSETS)}
    if rng.random() < 0.4:
        opsets["com.microsoft"] = 1
    if rng.random() < 0.2:
        opsets["ai.onnx.ml"] = min(5, 1 + opsets[""] // 5)
    return opsets


def _finished(
    builder: Builder, rng: random.Random, outputs: list[Value], renamed: bool = True
) -> FuzzCase:
    """The case of all that ``builder`` has, with its inputs in all runs."""
    model = _model(builder, outputs)
    feeds = [_feeds(builder, run) for run in (EXACT, OTHER)]
    feeds.append(with_nan(feeds[0], builder.rng))
    noise = {v.name: noise_of(v) for v in outputs}
    new = rename(model, rng) if renamed else {}
    return FuzzCase(
        builder.shared.seed,
        model,
        [{new.get(n, n): x for n, x in given.items()} for given in feeds],
        {new.get(n, n): x for n, x in noise.items()},
        builder.shared.rejections,
        [[v.runs[run] for v in outputs] for run in (EXACT, OTHER)],
        builder.shared.profile,
    )


def with_nan(feeds: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """``feeds`` with NaN and infinities in some of the floating inputs."""
    results = {}
    for name, array in feeds.items():
        if isinstance(array, np.ndarray) and array.dtype.kind == "f" and array.size:
            array = array.copy()
            count = int(rng.integers(0, 3))
            places = rng.integers(0, array.size, count)
            array.flat[places] = rng.choice([np.nan, np.inf, -np.inf, np.nan], count)
        results[name] = array
    return results


def noise_of(value: Value) -> float:
    """The largest difference that noise makes to a value."""
    return max(
        noise_between(value.runs[exact], value.runs[noisy])
        for exact, noisy in ((EXACT, NOISY), (OTHER, OTHER_NOISY))
    )


def noise_between(exact: Any, noisy: Any) -> float:
    """The largest finite difference between two runs of one value."""
    if isinstance(exact, list):
        pairs = zip(exact, noisy, strict=False)
        return max((noise_between(a, b) for a, b in pairs), default=0.0)
    if exact.shape != noisy.shape:
        return 0.0
    if exact.dtype.kind not in "fc":
        return 0.0
    finite = np.isfinite(exact)
    return sensitivity(exact[finite], noisy[finite])


def _add_first_inputs(builder: Builder) -> None:
    rng = builder.random
    names = list(builder.shared.symbols)
    for _ in range(rng.randint(1, 3)):
        dims: list[int | str] = [
            rng.choice(names) if rng.random() < 0.5 else rng.randint(1, 5)
            for _ in range(rng.randint(1, 4))
        ]
        sizes = builder.shared.symbols
        shape = [d if isinstance(d, int) else sizes[d][0] for d in dims]
        builder.add_input(builder.rng.standard_normal(shape).astype(np.float32), dims)


def _grow(builder: Builder, nodes: int) -> None:
    makers = PLAIN_GROWTH if builder.shared.profile in FROZEN else GROWTH
    failed, most = 0, MOST_REJECTIONS // (1 + 4 * builder.depth)
    while len(builder.nodes) < nodes and failed < most:
        failed += not grow_by_one(builder, makers)


def grow_by_one(builder: Builder, makers: list[tuple[Grow, float]]) -> bool:
    """Return whether a random one of ``makers`` added something."""
    functions, shares = zip(*makers, strict=True)
    (make,) = builder.random.choices(functions, shares)
    try:
        make(builder)
    except Rejected:
        return False
    return True


def _outputs(builder: Builder) -> list[Value]:
    """The values that the graph gives: most that nobody reads, and some others."""
    read = set(free_names(builder.nodes))
    rng = builder.random
    result = [
        v
        for v in builder.pool
        if v.origin == "node" and rng.random() < (0.08 if v.name in read else 0.85)
    ]
    if not result:
        result = [v for v in builder.pool if v.origin == "node"][-1:]
    return result


def _model(builder: Builder, outputs: list[Value]) -> onnx.ModelProto:
    """The model; some constants are inputs as well, which have a default so."""
    rng = builder.random
    inputs = [
        helper.make_value_info(name, type_proto(value.runs[0], dims))
        for name, (value, dims) in builder.inputs.items()
    ]
    used = set(free_names(builder.nodes))
    stored = {n: a for n, a in builder.constants.items() if n in used}
    old = rng.random() < 0.06
    for name, array in stored.items():
        if old or rng.random() < 0.03:
            proto = type_proto(array, array.shape)
            inputs.append(helper.make_value_info(name, proto))
    graph = helper.make_graph(
        builder.nodes,
        "fuzz",
        inputs,
        [helper.make_value_info(v.name, type_proto(v.runs[0])) for v in outputs],
        [numpy_helper.from_array(array, name) for name, array in stored.items()],
    )
    imports = [helper.make_opsetid(d, v) for d, v in builder.opsets.items()]
    ir_version = 3 if old else rng.choice([8, 9, 10, 11])
    functions = builder.shared.functions
    if builder.shared.profile == "types":
        ir_version = max(ir_version, 10)
    if functions:
        imports.append(helper.make_opsetid(DOMAIN, 1))
    return helper.make_model(
        graph, opset_imports=imports, ir_version=ir_version, functions=functions
    )


def _feeds(builder: Builder, run: int) -> dict[str, Any]:
    return {name: value.runs[run] for name, (value, _) in builder.inputs.items()}
