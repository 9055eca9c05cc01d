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
from burn_ir.layer import Keyword, Layer
from burn_ir.static import Value
from burn_ir.types import Type

if TYPE_CHECKING:
    from burn_ir.upgrade import Draft

__all__ = ["Branch", "Derivative", "Flow", "Keyword", "Layer", "Op", "Repeat", "Rows"]
__all__ += ["Slices", "Type", "Value", "operator", "operators"]

#: Fields that are no attributes.
COUNTS = frozenset({"results", "operands"})

C = TypeVar("C")
F = TypeVar("F", bound="Callable[[Draft], Draft]")
Key = tuple[str, str]

_OPERATORS: dict[Key, type[Op]] = {}


@dataclass(frozen=True)
class Branch:
    """The lowered form of ``If``: a choice between two closed subgraphs."""

    condition: Value
    then: Graph
    orelse: Graph
    operands: tuple[Value, ...]


@dataclass(frozen=True)
class Slices:
    """A value that a loop slices, one slice per iteration.

    ``axis`` is None for a sequence, which yields one item per iteration;
    ``reverse`` begins at the end. A ``whole`` value is not sliced: every iteration
    gets all of it.
    """

    value: Value
    axis: int | None = 0
    reverse: bool = False
    whole: bool = False


@dataclass(frozen=True)
class Rows:
    """A result that a loop collects, one piece per iteration.

    The pieces are of type ``piece`` and are stacked along ``axis``, in reverse
    order if ``reverse``; without an ``axis`` they stay a list.
    """

    piece: Type
    axis: int | None = 0
    reverse: bool = False


@dataclass(frozen=True)
class Repeat:
    """The lowered form of loops: repeated calls of a closed subgraph.

    The body's inputs are the iteration number and the condition (if ``counted``),
    the carried values, a slice of each of ``slices``, and the captured values. Its
    outputs are the condition (if ``counted``), the carried values, and a piece for
    each of ``rows``. It runs at most ``trips`` times (if None, once per slice, or
    unlimited) and while ``condition`` is true (always if None).
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
    """The lowered form of ``Gradient``: derivatives of a closed subgraph.

    The body has one result, ``name``. Its inputs are ``operands`` and the captured
    values; the derivatives are by the first ``count`` operands.
    """

    body: Graph
    operands: tuple[Value, ...]
    count: int
    captured: tuple[Value, ...]
    name: str


@dataclass(frozen=True)
class Flow:
    """Data flow into a subgraph, for type inference.

    ``types`` are the initial types of the subgraph's own inputs, and ``back`` maps
    each result index to the input index that gets it in the next iteration.
    """

    types: tuple[Type, ...]
    back: Mapping[int, int] = field(default_factory=dict)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def operator(cls: type[C]) -> type[C]:
    """Turn an operator class, or a mixin of several, into a frozen dataclass.

    ``dataclass`` would compile methods for each of hundreds of classes, which
    dominates the import time; :class:`Op` defines generic ones instead.

    Raises:
        TypeError: an attribute has the name of a method of :class:`Op`.
    """
    for name in inspect.get_annotations(cls):
        if callable(getattr(Op, name, None)):
            raise TypeError(f"{cls.__name__}: {name!r} is a method of Op, not a field")
    return dataclass(init=False, repr=False, eq=False)(cls)


class Op(ABC):
    """An operator at its newest version; a frozen dataclass of its attributes.

    Subclasses name the ONNX operator and all its versions::

        @operator
        class Softmax(Op, onnx="Softmax", versions=(1, 11, 13)):
            axis: int | tuple[int, ...] = -1

    Fields called ``results`` and ``operands`` are not attributes: they are the
    number of the node's outputs, and of its inputs without captured values.
    ``deterministic`` is False for operators with random results.
    """

    onnx: ClassVar[str]
    domain: ClassVar[str]
    versions: ClassVar[tuple[int, ...]]
    upgrades: ClassVar[dict[int, Callable[[Draft], Draft]]]
    deterministic: ClassVar[bool] = True

    def __init_subclass__(
        cls, *, onnx: str, versions: tuple[int, ...], domain: str = ""
    ) -> None:
        key = (domain, onnx)
        if key in _OPERATORS:
            raise ValueError(f"operator {onnx!r} of {domain!r} is declared twice")
        cls.onnx, cls.domain, cls.versions = onnx, domain, versions
        cls.upgrades = {}
        # Otherwise ``dataclass`` builds one from the signature: a tenth of the import
        # time.
        cls.__doc__ = cls.__doc__ or f"The operator {onnx}."
        _OPERATORS[key] = cls

    def __init__(self, *values: Any, **named: Any) -> None:
        names = _names(type(self))
        explicit = {**dict(zip(names, values, strict=False)), **named}
        state = {**_defaults(type(self)), **explicit}
        if len(explicit) < len(values) + len(named) or len(state) != len(names):
            raise TypeError(_argument_error(type(self), values, named))
        self.__dict__.update(state)
        self.__post_init__()

    def __post_init__(self) -> None:  # noqa: B027 - most operators need no validation
        """Validate the attributes; called when they are set."""

    def extra(self) -> str:
        """Return the extra that this node needs (``burn-runtime[text]``), or ""."""
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
        """Register the decorated upgrade for nodes of the given old versions.

        It converts such a node directly to the newest version.
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
        """Return the types of the results, from the operands' types (None if omitted).

        Raises:
            InvalidOperand: the operands or attributes do not fit the operator.
        """

    @abstractmethod
    def lower(self, *inputs: Any, **_: Any) -> Any:
        """Return the results, computed from the operands by calls of ``burn.ops``.

        It may read its operands' types and ``static(operand)``, but not the
        shape of an intermediate value: with symbolic operands, its calls are
        traced to source.
        """

    def layer(self, *inputs: Any, **_: Any) -> Layer | None:
        """Return the equivalent module for stored weights, or None.

        The arguments are the operands' types; a constant operand's type has
        ``known``.
        """
        return None

    def stateless_layer(self, *inputs: Any, **_: Any) -> Layer | None:
        """Return the equivalent layer without weights (``nn.MaxPool2d(2)``), or None.

        It is called with the first operand, and used where a module is needed: between
        the layers of an ``nn.Sequential``. None also if a function of ``burn.ops``
        without other arguments computes the same (``ops.relu``). The arguments are the
        operands' types.
        """
        return None

    def replaced(self, draft: Draft) -> Draft:
        """Return ``draft``, a node of this operator, as nodes of other operators.

        Overridden where attributes are weights, which become stored operands;
        such an operator is neither inferred nor lowered itself.
        """
        return draft

    def bodies(self) -> dict[str, Graph]:
        """Return the subgraphs among the attributes."""
        names = _body_names(type(self))
        if not names:
            return {}
        values = {name: getattr(self, name) for name in names}
        return {name: g for name, g in values.items() if isinstance(g, Graph)}

    @classmethod
    def may_have_bodies(cls) -> bool:
        """Return whether an attribute is, or may be, a subgraph."""
        return bool(_body_names(cls))

    @classmethod
    def flow(
        cls,
        attrs: Mapping[str, Any],
        operands: Sequence[Type | None],
        declared: Sequence[Type],
    ) -> Flow:
        """Return the data flow into a subgraph from ``operands``, without captures.

        ``declared`` are the current types of the subgraph's own inputs.
        """
        return Flow(())

    @classmethod
    def only_branch(cls, operands: Sequence[Type | None]) -> str | None:
        """Return the attribute of the only subgraph that runs, None if several may."""
        return None

    def attrs(self) -> dict[str, Any]:
        """Return the attributes by name."""
        return {name: getattr(self, name) for name in _names(type(self))}

    def with_attrs(self, **attrs: Any) -> Self:
        """Return this operator with other values of some attributes."""
        return type(self)(**{**self.attrs(), **attrs})


@cache
def _names(kind: type[Op]) -> tuple[str, ...]:
    """Return the names of an operator's fields."""
    return tuple(f.name for f in fields(kind))  # type: ignore[arg-type]


@cache
def _compared(kind: type[Op]) -> tuple[str, ...]:
    """Return the fields that equality compares."""
    return tuple(f.name for f in fields(kind) if f.compare)  # type: ignore[arg-type]


@cache
def _defaults(kind: type[Op]) -> dict[str, Any]:
    """Return the default values of fields by name, in the order of the fields."""
    defaults = {f.name: f.default for f in fields(kind)}  # type: ignore[arg-type]
    return {name: value for name, value in defaults.items() if value is not MISSING}


def _argument_error(
    kind: type[Op], values: tuple[Any, ...], named: dict[str, Any]
) -> str:
    """Return an error message for arguments that do not set each field once."""
    names = _names(kind)
    positional = names[: len(values)]
    settled = {*positional, *named, *_defaults(kind)}
    for problem, wrong in (
        ("more arguments than fields", values[len(names) :]),
        ("two values of", [name for name in positional if name in named]),
        ("no field", [name for name in named if name not in names]),
        ("no value of", [name for name in names if name not in settled]),
    ):
        if wrong:
            return f"{kind.__qualname__}: {problem} {', '.join(map(str, wrong))}"
    raise AssertionError("the arguments fit")


@cache
def hints(cls: type[Op]) -> dict[str, Any]:
    """Return the type hint of each attribute of an operator."""
    annotations: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base is not Op:
            annotations |= inspect.get_annotations(base, eval_str=True)
    return {name: annotations[name] for name in _names(cls)}


@cache
def _body_names(cls: type[Op]) -> tuple[str, ...]:
    """Return the attributes that are or may be subgraphs."""
    kinds = ((name, (hint, *get_args(hint))) for name, hint in hints(cls).items())
    return tuple(name for name, kind in kinds if Graph in kind)


def operators() -> Mapping[Key, type[Op]]:
    """Return every declared operator by (domain, name)."""
    return _OPERATORS


#: A field specifier for subgraphs.
def body() -> Any:
    """Return a dataclass field for a subgraph, which equality ignores."""
    return field(compare=False)
