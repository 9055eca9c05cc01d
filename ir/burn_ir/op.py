"""The declaration of an operator: attributes, versions, inference and lowering."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from functools import cache
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Self,
    TypeVar,
    dataclass_transform,
    get_args,
)

from burn_ir.graph import Graph
from burn_ir.static import Value
from burn_ir.types import Type

if TYPE_CHECKING:
    from burn_ir.upgrade import Draft

__all__ = ["Branch", "Derivative", "Flow", "Layer", "Op", "Repeat", "Rows"]
__all__ += ["Slices", "Type", "Value", "operator", "operators"]

#: Fields that are no attributes.
COUNTS = frozenset({"results", "operands"})

C = TypeVar("C")
F = TypeVar("F", bound="Callable[[Draft], Draft]")
Key = tuple[str, str]

_OPERATORS: dict[Key, type[Op]] = {}


@dataclass(frozen=True)
class Layer:
    """A module of ``burn.nn`` that does what a node does, with weights or a state.

    ``name`` is the class, ``args`` and ``options`` its arguments as the owner would
    write them, ``weights`` the position of the node's operand by parameter name, and
    ``data`` the positions of the operands that the module is called with, in a tuple
    those that it takes as one. ``results`` are the positions of the node's results in
    what it returns, where that has tuples inside. Weights are float32, or of the dtype
    among the options, but for ``tables``, which the module holds in the operand's
    dtype.
    """

    name: str
    args: tuple[Any, ...]
    options: Mapping[str, Any]
    weights: Mapping[str, int]
    data: tuple[int | tuple[int, ...], ...] = (0,)
    tables: frozenset[str] = frozenset()
    results: tuple[int | tuple[int, ...], ...] | None = None

    def arguments(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        """What the module is called with, of a node's operands."""
        return tuple(
            operands[p] if isinstance(p, int) else tuple(operands[i] for i in p)
            for p in self.data
        )


@dataclass(frozen=True)
class Branch:
    """What ``If`` lowers to: run one of two closed bodies on ``operands``."""

    condition: Value
    then: Graph
    orelse: Graph
    operands: tuple[Value, ...]


@dataclass(frozen=True)
class Slices:
    """A value that a loop takes apart: one slice a round, as the body's operand.

    ``axis`` is None for a sequence, which gives one item a round; ``reverse`` begins
    at the end. What is ``whole`` is not taken apart: every round has all of it.
    """

    value: Value
    axis: int | None = 0
    reverse: bool = False
    whole: bool = False


@dataclass(frozen=True)
class Rows:
    """A result that a loop puts together from one piece a round.

    The pieces are of type ``piece`` and are stacked along ``axis``, the last one first
    if ``reverse``; without an ``axis`` they stay a list.
    """

    piece: Type
    axis: int | None = 0
    reverse: bool = False


@dataclass(frozen=True)
class Repeat:
    """What loops lower to: run a closed body again and again.

    The body is called with the round's number and whether to go on (if ``counted``),
    what is carried from round to round, a piece of each of ``slices``, and what it
    captures. It gives whether to go on (if ``counted``), what is carried, and a piece
    for each of ``rows``. It runs at most ``trips`` times (without limit if None, as
    often as there are slices) and while ``condition`` is true (always if None).
    """

    body: Graph
    trips: Value | None
    condition: Value | None
    carried: tuple[Value, ...]
    slices: tuple[Slices, ...]
    rows: tuple[Rows, ...]
    captured: tuple[Value, ...]
    counted: bool


@dataclass(frozen=True)
class Derivative:
    """What ``Gradient`` lowers to: the derivatives of a closed body with one result.

    They are by the first ``count`` of ``operands``, which the body is called with,
    followed by what it captures. ``name`` is what the result is called.
    """

    body: Graph
    operands: tuple[Value, ...]
    count: int
    captured: tuple[Value, ...]
    name: str


@dataclass(frozen=True)
class Flow:
    """How values flow into a body, for inference.

    ``types`` are those of the body's own inputs before the first round, and ``back``
    says which result (by position) is which input in the next.
    """

    types: tuple[Type, ...]
    back: Mapping[int, int] = field(default_factory=dict)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def operator(cls: type[C]) -> type[C]:
    """``cls``, an operator or what several have in common, as a frozen dataclass.

    The methods that ``dataclass`` would compile for each of hundreds of classes are
    those of :class:`Op`, once: else they take most of the time of declaring all.
    """
    return dataclass(init=False, repr=False, eq=False)(cls)


class Op(ABC):
    """An operator at its newest version; a frozen dataclass of its attributes.

    Subclasses name the ONNX operator and every version it ever had::

        @operator
        class Softmax(Op, onnx="Softmax", versions=(1, 11, 13)):
            axis: int | tuple[int, ...] = -1

    Fields called ``results`` and ``operands`` are not attributes: they are the number
    of outputs that the node asks for, and of inputs without those that bodies capture.
    ``deterministic`` is false for operators that draw at random.
    """

    onnx: ClassVar[str]
    domain: ClassVar[str]
    versions: ClassVar[tuple[int, ...]]
    upgrades: ClassVar[dict[int, Callable[[Draft], Draft]]]
    deterministic: ClassVar[bool] = True

    def __init_subclass__(
        cls,
        *,
        onnx: str,
        versions: tuple[int, ...],
        domain: str = "",
    ) -> None:
        key = (domain, onnx)
        if key in _OPERATORS:
            raise ValueError(f"operator {onnx!r} of {domain!r} is declared twice")
        cls.onnx, cls.domain, cls.versions = onnx, domain, versions
        cls.upgrades = {}
        # Else ``dataclass`` makes one of the signature: a tenth of the time of all.
        cls.__doc__ = cls.__doc__ or f"The operator {onnx}."
        _OPERATORS[key] = cls

    def __init__(self, *values: Any, **named: Any) -> None:
        names = _names(type(self))
        given = {**dict(zip(names, values, strict=False)), **named}
        state = {**_defaults(type(self)), **given}
        if len(given) < len(values) + len(named) or len(state) != len(names):
            raise TypeError(_unfit(type(self), values, named))
        self.__dict__.update(state)
        self.__post_init__()

    def __post_init__(self) -> None:  # noqa: B027 - most have nothing to look at
        """Called with the attributes set, to look at them."""

    def extra(self) -> str:
        """Return what this node needs installed (``burn-runtime[text]``), or empty."""
        return ""

    def __setattr__(self, name: str, value: Any) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        own, its = self.__dict__, other.__dict__
        return all(own[name] == its[name] for name in _compared(type(self)))

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__[name] for name in _compared(type(self))))

    def __repr__(self) -> str:
        shown = (f"{name}={value!r}" for name, value in self.attrs().items())
        return f"{type(self).__qualname__}({', '.join(shown)})"

    @classmethod
    def upgrade(cls, *versions: int) -> Callable[[F], F]:
        """Declare the decorated rewrite for nodes of the given old versions.

        It turns such a node directly into one of the newest version.
        """

        def register(rewrite: F) -> F:
            for version in versions:
                if version not in cls.versions or version in cls.upgrades:
                    raise ValueError(
                        f"{cls.onnx} version {version}: no or two upgrades"
                    )
                cls.upgrades[version] = rewrite
            return rewrite

        return register

    @abstractmethod
    def infer(self, *inputs: Any, **_: Any) -> Type | tuple[Type, ...]:
        """The types of the results, from the operands' types (None if omitted).

        Raises:
            InvalidOperand: the operands or attributes do not fit the operator.
        """

    @abstractmethod
    def lower(self, *inputs: Any, **_: Any) -> Any:
        """The results, computed from the operands by calls of ``burn.ops``.

        It may look at its operands' types and at ``static(operand)``, never at an
        intermediate's shape: called with symbols, it prints the source.
        """

    def layer(self, *inputs: Any, **_: Any) -> Layer | None:
        """The module that does the same when the weights are stored; None if none.

        Called with the operands' types; a constant operand's type has ``known``.
        """
        return None

    def replaced(self, draft: Draft) -> Draft:
        """``draft``, a node of this operator, as one or several of other operators.

        Overridden where attributes are weights, which then become stored operands;
        an operator that does so is neither inferred nor lowered itself.
        """
        return draft

    def bodies(self) -> dict[str, Graph]:
        """The graphs among the attributes."""
        names = _body_names(type(self))
        if not names:
            return {}
        values = {name: getattr(self, name) for name in names}
        return {name: g for name, g in values.items() if isinstance(g, Graph)}

    @classmethod
    def may_have_bodies(cls) -> bool:
        """Whether graphs are, or may be, among the attributes."""
        return bool(_body_names(cls))

    @classmethod
    def flow(
        cls,
        attrs: Mapping[str, Any],
        operands: Sequence[Type | None],
        declared: Sequence[Type],
    ) -> Flow:
        """What flows into a body: ``operands`` are the node's, without captures.

        ``declared`` are the types that the body's own inputs have so far.
        """
        return Flow(())

    def attrs(self) -> dict[str, Any]:
        """The attributes by name."""
        return {name: getattr(self, name) for name in _names(type(self))}

    def with_attrs(self, **attrs: Any) -> Self:
        """This operator with other values of some attributes."""
        return type(self)(**{**self.attrs(), **attrs})


@cache
def _names(kind: type[Op]) -> tuple[str, ...]:
    """The names of the fields of an operator's class; asked of every node, often."""
    return tuple(f.name for f in fields(kind))  # type: ignore[arg-type]


@cache
def _compared(kind: type[Op]) -> tuple[str, ...]:
    """The fields that make two operators equal."""
    return tuple(f.name for f in fields(kind) if f.compare)  # type: ignore[arg-type]


@cache
def _defaults(kind: type[Op]) -> dict[str, Any]:
    """The values of the fields that need not be given, in the order of all."""
    defaults = {f.name: f.default for f in fields(kind)}  # type: ignore[arg-type]
    return {name: value for name, value in defaults.items() if value is not MISSING}


def _unfit(kind: type[Op], values: tuple[Any, ...], named: dict[str, Any]) -> str:
    """What is wrong with arguments that do not set each field once."""
    names = _names(kind)
    taken = names[: len(values)]
    settled = {*taken, *named, *_defaults(kind)}
    for problem, wrong in (
        ("more arguments than fields", values[len(names) :]),
        ("two values of", [name for name in taken if name in named]),
        ("no field", [name for name in named if name not in names]),
        ("no value of", [name for name in names if name not in settled]),
    ):
        if wrong:
            return f"{kind.__qualname__}: {problem} {', '.join(map(str, wrong))}"
    raise AssertionError("the arguments fit")


@cache
def hints(cls: type[Op]) -> dict[str, Any]:
    """The kind of each attribute of an operator."""
    annotations: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base is not Op:
            annotations |= inspect.get_annotations(base, eval_str=True)
    return {name: annotations[name] for name in _names(cls)}


@cache
def _body_names(cls: type[Op]) -> tuple[str, ...]:
    """The attributes that are graphs, or may be: few operators have any."""
    kinds = ((name, (hint, *get_args(hint))) for name, hint in hints(cls).items())
    return tuple(name for name, kind in kinds if Graph in kind)


def operators() -> Mapping[Key, type[Op]]:
    """Every declared operator by (domain, name)."""
    return _OPERATORS


#: A field that holds a graph.
def body() -> Any:
    """A dataclass field for a body, which equality leaves out."""
    return field(compare=False)
