"""Tracing: ``lower``, run on symbols, leaves a statement for each primitive call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from burn import Tensor, ops
from burn.backend import Backend
from burn.dtypes import DType
from burn.primitive import Primitive, recording
from burn_ir.dim import Dim, Poly, symbol
from burn_ir.errors import InvalidOperand, Undecided
from burn_ir.types import Array, Type

#: An extent that is another one in every round of a loop.
CHANGING = symbol("?step")


class Symbol:
    """A value that source is being written for.

    ``type`` is what is known of it (None for an intermediate inside one ``lower``),
    ``constant`` the name of the stored array that it stands for, if any.
    """

    __slots__ = ("constant", "name", "type")

    def __init__(
        self, type: Type | None = None, name: str = "", constant: str = ""
    ) -> None:
        self.type = type
        self.name = name
        self.constant = constant

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The extents; Undecided where a ``lower`` may not know them."""
        if self.type is None:
            raise Undecided("an intermediate has no known shape")
        return self.type.dims

    @property
    def dtype(self) -> DType:
        """The element type; Undecided for an intermediate."""
        if self.type is None:
            raise Undecided("an intermediate has no known dtype")
        return self.type.dtype

    @property
    def known(self) -> Array | None:
        """The contents, for ``static``."""
        return None if self.type is None else self.type.known


class Origin(NamedTuple):
    """The node of the model that a statement is for, as messages name it."""

    node: str = ""
    operator: str = ""
    opset: int | None = None


@dataclass
class Apply:
    """``targets = primitive(*args, **static)``.

    ``origin`` is the node whose ``lower`` made the call.
    """

    primitive: Primitive[..., Any]
    args: tuple[Any, ...]
    static: dict[str, Any]
    targets: list[Symbol]
    origin: Origin = field(default=Origin(), compare=False)


@dataclass
class ModuleCall:
    """``targets = self.path(*args)``: a layer or a module of ours.

    Where ``results`` is given, tuples stand for several of the targets, by position.
    A ``visit`` is the call of a layer that another module keeps.
    One that changes a state is ``kept``, whether or not somebody reads the targets.
    """

    path: tuple[str, ...]
    args: tuple[Any, ...]
    targets: list[Symbol]
    results: tuple[int | tuple[int, ...], ...] | None = None
    visit: bool = False
    kept: bool = False


@dataclass
class Choice:
    """``if condition: ... else: ...``, both sides assigning ``targets``."""

    condition: Any
    then: Block
    orelse: Block
    targets: list[Symbol]


@dataclass(frozen=True)
class Members:
    """Modules of the list at ``path`` that the rounds of a loop take in turn.

    They are those from ``start`` to before ``stop``, of ``count``, which is 0 if the
    list is one of several of different lengths. In the body, the calls of the first one
    stand for those of each.
    """

    path: tuple[str, ...]
    start: int
    stop: int
    count: int

    @property
    def whole(self) -> bool:
        """Whether these are all modules of the list."""
        return self.stop - self.start == self.count


@dataclass
class Repetition:
    """``for`` or ``while``: the rounds of a loop of the model, or through its modules.

    In a round, ``state`` are the carried values, which begin as ``initial``. The body's
    results are their next values, then a piece for each list, then, if ``check`` is
    "after", whether there is another round. If it is "before", the first carried value
    says so. ``targets`` are the carried values in the end, then the lists. ``trips`` is
    a tensor or a dimension, None without limit; ``counter`` the round's number. If
    there are ``items``, each symbol is an item of what stands beside it in turn (a list
    or a tuple of tensors), and they say how many rounds there are, as do ``members``.
    """

    trips: Any
    counter: Poly
    initial: list[Any]
    state: list[Symbol]
    body: Block
    check: str
    targets: list[Symbol]
    items: list[tuple[Symbol, Any]] = field(default_factory=list)
    members: list[Members] = field(default_factory=list)


@dataclass
class Derivation:
    """``def name(*state): body`` and ``targets = ops.gradient(name, ...)``.

    The derivatives are by the first of ``args``, as many as there are targets.
    """

    name: str
    args: list[Any]
    state: list[Symbol]
    body: Block
    targets: list[Symbol]


Statement = Apply | ModuleCall | Choice | Repetition | Derivation


def blocks_of(statement: Statement) -> tuple[Block, ...]:
    """The blocks inside a statement."""
    if isinstance(statement, Choice):
        return (statement.then, statement.orelse)
    if isinstance(statement, Repetition | Derivation):
        return (statement.body,)
    return ()


@dataclass
class Block:
    """Statements in order, and the values that are returned or handed out."""

    statements: list[Statement] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)


class Tracer(Backend):
    """The backend of symbols: every call becomes a statement of the open block."""

    level = math.inf
    keeps_composites = True

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        #: How many results the operator being lowered has.
        self.wanted = 1
        #: What node is being lowered, for messages.
        self.origin = Origin()

    def call(
        self,
        primitive: Primitive[..., Any],
        args: tuple[Any, ...],
        static: dict[str, Any],
    ) -> Any:
        if getattr(ops, primitive.name, None) is not primitive:
            raise InvalidOperand(
                "expected operations of burn.ops, which can be written, got "
                f"{primitive.name!r} of {primitive.__module__}"
            )
        if primitive.outputs == 1:
            target = Symbol()
            self.append(Apply(primitive, args, static, [target], self.origin))
            return Tensor(target, self)
        targets = [Symbol() for _ in range(primitive.outputs or self._pieces(args))]
        self.append(Apply(primitive, args, static, targets, self.origin))
        return tuple(Tensor(target, self) for target in targets)

    def append(self, statement: Statement) -> None:
        """Add a statement to the open block."""
        self.blocks[-1].statements.append(statement)

    def symbol(self, type: Type | None, name: str = "", constant: str = "") -> Tensor:
        """A tensor of source: an operand to hand to a ``lower``."""
        return Tensor(Symbol(type, name, constant), self)

    def from_numpy(self, array: np.ndarray[Any, Any]) -> Any:
        raise TypeError("a symbol has no elements")

    def to_numpy(self, data: Any) -> np.ndarray[Any, Any]:
        raise Undecided("the value is known only when the model runs")

    def lower(self, op: Any, operands: Sequence[Any]) -> Any:
        """The result of ``op.lower`` with every primitive call recorded."""
        self.wanted = getattr(op, "results", 1)
        with recording(self):
            return op.lower(*operands)

    def _pieces(self, args: tuple[Any, ...]) -> int:
        """The number of results of a split (as many as sizes) or a chunk (as asked)."""
        sizes = args[1]
        if isinstance(sizes, int):
            return sizes
        return self.wanted if isinstance(sizes, Tensor) else len(sizes)
