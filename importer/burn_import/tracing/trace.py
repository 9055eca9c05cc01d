"""Tracing: ``lower`` runs on symbols and records a statement per primitive call."""

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
from burn_import.tracing.constructor_numbers import ParameterInt
from burn_ir.dim import Dim, Poly, symbol
from burn_ir.errors import InvalidOperand, Undecided
from burn_ir.types import Array, Type

#: A dimension that differs between iterations of a loop.
CHANGING = symbol("?step")


class Symbol:
    """An SSA value of the traced source.

    ``type`` is None for an intermediate inside one ``lower``; ``constant`` names
    the stored array of the value, if any.
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
        """The dimensions; Undecided where a ``lower`` may not know them."""
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
        """Return the contents, for ``static``."""
        return None if self.type is None else self.type.known


class Origin(NamedTuple):
    """The node of the model that a statement comes from, for messages."""

    node: str = ""
    operator: str = ""
    opset: int | None = None


#: Alternatives to a call in an ``nn.Sequential``: the source of one or several steps.
Forms = tuple[tuple[str, ...], ...]


@dataclass
class Apply:
    """``targets = primitive(*args, **static)``.

    ``origin`` is the node whose ``lower`` made the call. ``forms`` are () if it is no
    step of an ``nn.Sequential``.
    """

    primitive: Primitive[..., Any]
    args: tuple[Any, ...]
    static: dict[str, Any]
    targets: list[Symbol]
    origin: Origin = field(default=Origin(), compare=False)
    forms: Forms = field(default=(), compare=False)


#: Selects the first item of a tuple.
FIRST = "[0]"


@dataclass
class ModuleCall:
    """``targets = self.path(*args)``: a call of a layer or submodule.

    With ``results``, tuples replace several of the targets, by position. A
    ``visit`` is the call of a layer that another module owns. A call that changes a
    state is ``kept`` even if its targets are not read.
    """

    path: tuple[str, ...]
    args: tuple[Any, ...]
    targets: list[Symbol]
    results: tuple[int | tuple[int, ...], ...] | None = None
    visit: bool = False
    kept: bool = False

    @property
    def is_first_result(self) -> bool:
        """Whether the target is the first item of the tuple that the call returns."""
        return self.results is not None and len(self.targets) == 1


@dataclass
class Choice:
    """``if condition: ... else: ...``, both branches assigning ``targets``."""

    condition: Any
    then: Block
    orelse: Block
    targets: list[Symbol]


@dataclass(frozen=True)
class Members:
    """Modules of the list at ``path`` that a loop calls in turn.

    They are the modules ``start`` to ``stop`` (exclusive) of ``count``, which is 0
    if the list is one of several of different lengths. In the loop's body, calls of
    the first module represent those of each.
    """

    path: tuple[str, ...]
    start: int
    stop: int
    count: int

    @property
    def whole(self) -> bool:
        """Return whether these are all modules of the list."""
        return self.stop - self.start == self.count


@dataclass(frozen=True)
class NumberRow:
    """An integer of a loop: one of ``values`` per iteration.

    Indices read ``dim`` and static arguments ``static``, whose text is its name.
    """

    dim: Poly
    noun: str
    static: ParameterInt
    values: tuple[int, ...]


@dataclass
class Repetition:
    """``for`` or ``while``: a loop of the model, or over its modules.

    In each iteration, ``state`` are the carried values, initially ``initial``. The
    body's results are their next values, then an element for each collected list,
    then, if ``check`` is "after", the condition to continue. If it is "before", the
    first carried value is the condition. ``targets`` are the final carried values,
    then the lists. ``trips`` is a tensor or a dimension, None if unlimited;
    ``counter`` is the iteration number. With ``items``, each symbol is an element
    of the list or tuple of tensors beside it; they set the number of iterations, as
    do ``members``. So do ``numbers``, with an integer for each iteration.
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
    numbers: list[NumberRow] = field(default_factory=list)


@dataclass
class Derivation:
    """``def name(*state): body`` and ``targets = ops.gradient(name, ...)``.

    The derivatives are with respect to the first ``args``, one per target.
    """

    name: str
    args: list[Any]
    state: list[Symbol]
    body: Block
    targets: list[Symbol]


Statement = Apply | ModuleCall | Choice | Repetition | Derivation


def blocks_of(statement: Statement) -> tuple[Block, ...]:
    """Return the blocks nested in a statement."""
    if isinstance(statement, Choice):
        return (statement.then, statement.orelse)
    if isinstance(statement, Repetition | Derivation):
        return (statement.body,)
    return ()


@dataclass
class Block:
    """Statements in order, and the returned values."""

    statements: list[Statement] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)


class Tracer(Backend):
    """The backend of symbols: every call appends a statement to the open block."""

    level = math.inf
    keeps_composites = True

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        #: Number of results of the operator being lowered.
        self.result_count = 1
        #: The node being lowered, for messages.
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
        """Return a symbolic tensor, as an operand for a ``lower``."""
        return Tensor(Symbol(type, name, constant), self)

    def from_numpy(self, array: np.ndarray[Any, Any]) -> Any:
        raise TypeError("a symbol has no elements")

    def to_numpy(self, data: Any) -> np.ndarray[Any, Any]:
        raise Undecided("the value is known only when the model runs")

    def lower(self, op: Any, operands: Sequence[Any]) -> Any:
        """Return the result of ``op.lower``, with every primitive call recorded."""
        self.result_count = getattr(op, "results", 1)
        with recording(self):
            return op.lower(*operands)

    def _pieces(self, args: tuple[Any, ...]) -> int:
        """Return the number of results of a split or a chunk."""
        sizes = args[1]
        if isinstance(sizes, int):
            return sizes
        return self.result_count if isinstance(sizes, Tensor) else len(sizes)
