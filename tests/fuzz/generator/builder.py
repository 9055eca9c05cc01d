"""A graph under construction: values, nodes, inputs and constants of one scope."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, helper

from tests.fuzz.generator.trial import Rejected, executed
from tests.fuzz.generator.values import Array, Value, constant, with_noise

#: The extents that named dimensions may have, rare ones once.
EXTENTS = (1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 7, 8)


class Shared:
    """What all scopes of one model share: randomness, opsets, names, extents."""

    def __init__(
        self, seed: int, opsets: Mapping[str, int], profile: str = "mixed"
    ) -> None:
        self.seed = seed
        self.profile = profile
        self.random = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.steps = 0
        self.draws = 0
        self.opsets = dict(opsets)
        #: Model-local functions that nodes may call.
        self.functions: list[FunctionProto] = []
        self.count = 0
        self.rejections: dict[str, int] = {}
        #: Named dimensions with their extents at both sizes.
        self.symbols = self._symbols()

    def _symbols(self) -> dict[str, tuple[int, int]]:
        choose = self.random.choice
        results = {name: (choose(EXTENTS), choose(EXTENTS)) for name in ("N", "M", "K")}
        if self.random.random() < 0.1:
            results["E"] = (choose(EXTENTS), 0)
        return results

    def next_step(self) -> None:
        """Begin a random stream of its own for the next thing that a graph grows by.

        What the steps before it drew does not matter then: a change of one operator's
        examples leaves the graphs alone that do not use it.
        """
        self.steps, self.draws = self.steps + 1, 0
        self.random.seed(self.step_key())
        fresh = np.random.default_rng(zlib.crc32(self.step_key().encode()))
        self.rng.bit_generator.state = fresh.bit_generator.state

    def step_key(self) -> str:
        """Return the random key of a step, and of a draw within it."""
        self.draws += 1
        return f"{self.profile}:{self.seed}:{self.steps}:{self.draws}"

    def fresh(self, prefix: str = "v") -> str:
        """A name that no value has."""
        self.count += 1
        return f"{prefix}{self.count}"


class Builder:
    """One scope: the main graph, or a body that sees what is outside of it."""

    def __init__(self, shared: Shared, outer: Builder | None = None) -> None:
        self.shared = shared
        self.outer = outer
        self.nodes: list[NodeProto] = []
        self.pool: list[Value] = []
        self.constants: dict[str, Array] = {}
        #: Inputs of the main graph with their declared extents.
        self.inputs: dict[str, tuple[Value, list[int | str]]] = {}
        self.random = shared.random
        self.rng = shared.rng
        self.opsets = shared.opsets

    @property
    def opset(self) -> int:
        return self.opsets[""]

    @property
    def depth(self) -> int:
        return 0 if self.outer is None else self.outer.depth + 1

    @property
    def root(self) -> Builder:
        return self if self.outer is None else self.outer.root

    def snapshot(self) -> tuple[Any, ...]:
        """The state of this scope and of those outside, for ``restore``."""
        outer = self.outer.snapshot() if self.outer else ()
        mine = (list(self.nodes), list(self.pool), dict(self.constants))
        return (mine, dict(self.inputs), outer)

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """Forget all that was added since ``snapshot``."""
        (self.nodes, self.pool, self.constants), self.inputs, outer = snapshot
        if self.outer is not None:
            self.outer.restore(outer)

    def visible(self) -> list[Value]:
        """All values that nodes of this scope may read, oldest first."""
        return (self.outer.visible() if self.outer else []) + self.pool

    def find(self, name: str) -> Value:
        """The visible value of a name."""
        for value in self._every():
            if value.name == name:
                return value
        raise KeyError(name)

    def _every(self) -> Iterator[Value]:
        yield from self.pool
        yield from (constant(n, a) for n, a in self.constants.items())
        if self.outer is not None:
            yield from self.outer._every()

    def choose(self, wanted: Callable[[Value], bool]) -> Value | None:
        """A random visible value, more likely a recent one; None if there is none."""
        results = [v for v in self.visible() if wanted(v)]
        if not results:
            return None
        index = int(len(results) * self.random.random() ** 0.6)
        return results[min(index, len(results) - 1)]

    def add_constant(self, array: Array) -> Value:
        """A constant: an initializer, or the result of a Constant node."""
        name = self.shared.fresh("c")
        plain = array.dtype != object
        if self.opset < 9:  # Constant was for floating types alone
            plain = array.dtype.kind == "f"
        if plain and self.random.random() < 0.25:
            tensor = helper.make_tensor(
                name,
                helper.np_dtype_to_tensor_dtype(array.dtype),
                array.shape,
                array.tobytes(),
                raw=True,
            )
            node = helper.make_node("Constant", [], [name], value=tensor)
            self.nodes.append(node)
            value = constant(name, array)
            self.pool.append(value)
            return value
        self.constants[name] = array
        return constant(name, array)

    def add_input(self, array: Array, dims: Sequence[int | str] | None = None) -> Value:
        """An input of the main graph with ``array`` for its contents.

        ``dims`` are declared extents; for named ones the second size is another.
        """
        name = self.shared.fresh("in")
        dims = list(array.shape) if dims is None else list(dims)
        second = self._resized(array, dims)
        runs = tuple(
            with_noise(x, self.rng) if noisy else x
            for x in (array, second)
            for noisy in (False, True)
        )
        value = Value(name, runs, "input")
        self.root.inputs[name] = (value, dims)
        self.root.pool.append(value)
        return value

    def _resized(self, array: Array, dims: Sequence[int | str]) -> Array:
        sizes = self.shared.symbols
        shape = [d if isinstance(d, int) else sizes[d][1] for d in dims]
        if array.size == 0:
            return np.zeros(shape, array.dtype)
        rolled = np.roll(array.ravel(), 1)
        return np.resize(rolled, shape).astype(array.dtype)

    def try_nodes(
        self, nodes: Sequence[NodeProto], results: Sequence[str]
    ) -> list[Value]:
        """Add ``nodes`` if they run; return the values of ``results``.

        Raises:
            Rejected: they do not, or their results cannot be compared.
        """
        created = {name for node in nodes for name in node.output}
        names = [n for n in free_names(nodes) if n not in created]
        operands = [self.find(name) for name in names]
        try:
            values = executed(
                nodes, operands, results, self.opsets, self.rng, self.shared.functions
            )
        except Rejected as error:
            key = f"{nodes[-1].op_type}: {error}"
            counts = self.shared.rejections
            counts[key] = counts.get(key, 0) + 1
            raise
        self.nodes.extend(nodes)
        self.pool.extend(values)
        return values

    def try_node(
        self, op: str, inputs: Sequence[str], outputs: int = 1, **attrs: Any
    ) -> list[Value]:
        """Add one node of ONNX's own domain if it runs; return its results.

        Raises:
            Rejected: it does not, or its results cannot be compared.
        """
        names = [self.shared.fresh() for _ in range(outputs)]
        return self.try_nodes([helper.make_node(op, inputs, names, **attrs)], names)


def free_names(nodes: Sequence[NodeProto]) -> list[str]:
    """The names that ``nodes`` and their bodies read and do not make."""
    results: dict[str, None] = {}
    for node in nodes:
        names = [n for n in node.input if n]
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                names.extend(captured_names(attribute.g))
        results.update(dict.fromkeys(names))
    return list(results)


def captured_names(graph: GraphProto) -> list[str]:
    """The names that a body reads from outside."""
    own = {i.name for i in graph.input} | {i.name for i in graph.initializer}
    own |= {name for node in graph.node for name in node.output}
    names = [*free_names(graph.node), *(o.name for o in graph.output)]
    return [name for name in names if name not in own]
