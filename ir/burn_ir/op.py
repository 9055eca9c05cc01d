"""The declaration of an operator: attributes, versions, inference and lowering."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from burn_ir.graph import Graph
from burn_ir.static import Value
from burn_ir.types import Type

if TYPE_CHECKING:
    from burn_ir.upgrade import Draft

__all__ = ["Branch", "Layer", "Op", "Type", "Value", "operators"]

F = TypeVar("F", bound="Callable[[Draft], Draft]")
Key = tuple[str, str]

_OPERATORS: dict[Key, type[Op]] = {}


@dataclass(frozen=True)
class Layer:
    """A module of ``burn.nn`` that does what a node does, with weights or a state.

    ``name`` is the class, ``args`` and ``options`` its arguments as the owner would
    write them, ``weights`` the position of the node's operand by parameter name, and
    ``data`` the positions of the operands that the module is called with.
    """

    name: str
    args: tuple[Any, ...]
    options: Mapping[str, Any]
    weights: Mapping[str, int]
    data: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Branch:
    """What ``If`` lowers to: run one of two closed bodies on ``operands``."""

    condition: Value
    then: Graph
    orelse: Graph
    operands: tuple[Value, ...]


class Op(ABC):
    """An operator at its newest version; a frozen dataclass of its attributes.

    Subclasses name the ONNX operator and every version it ever had::

        @dataclass(frozen=True)
        class Softmax(Op, onnx="Softmax", versions=(1, 11, 13)):
            axis: int | tuple[int, ...] = -1

    A field called ``results`` is no attribute: it is set to the number of outputs that
    the node asks for. ``deterministic`` is false for operators that draw at random.
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
        _OPERATORS[key] = cls

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

    def bodies(self) -> dict[str, Graph]:
        """The graphs among the attributes."""
        return {name: g for name, g in self.attrs().items() if isinstance(g, Graph)}

    def body_types(self, body: str, operands: Sequence[Type | None]) -> Sequence[Type]:
        """The types of a body's inputs, from those of the operands."""
        raise NotImplementedError(f"{self.onnx} has no body {body!r}")

    def attrs(self) -> dict[str, Any]:
        """The attributes by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]


def operators() -> Mapping[Key, type[Op]]:
    """Every declared operator by (domain, name)."""
    import burn_ir.ops  # noqa: F401  declares them

    return _OPERATORS


#: A field that holds a graph.
def body() -> Any:
    """A dataclass field for a body, which equality leaves out."""
    return field(compare=False)
