"""The values of one graph of a program, and their aliases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from burn.record.errors import shown
from burn_import.frontends.torch_export.builder import Nodes, Value
from burn_import.frontends.torch_export.registry import RULES
from burn_ir import InvalidModel, UnsupportedModel
from burn_ir.errors import Problem

Arguments = Sequence[tuple[str, Any]]
#: An ATen target and its arguments by name.
Call = tuple[str, Mapping[str, Any]]

#: Views of a part, and the operators that write the part back.
_PARTS: Mapping[str, str] = {
    "aten.as_strided.default": "aten.as_strided_scatter.default",
    "aten.diagonal.default": "aten.diagonal_scatter.default",
    "aten.select.int": "aten.select_scatter.default",
    "aten.slice.Tensor": "aten.slice_scatter.default",
}
#: Involutive views, which are their own inverse.
_TRANSPOSES = frozenset({"aten.alias.default", "aten.t.default", "aten.transpose.int"})
#: Views of the same elements in another shape that never copy.
_SHAPES = frozenset({"aten.squeeze.dim", "aten.unsqueeze.default", "aten.view.default"})
#: Operators that always return a view, which reflects changes of its source.
VIEWS = frozenset(
    {
        *(*_PARTS, *_TRANSPOSES, *_SHAPES),
        *("aten.detach.default", "aten.expand.default", "aten.permute.default"),
    }
)


def inverse_view(
    target: str, args: Mapping[str, Any], base: Value, new: Value
) -> Call | None:
    """Return the call that computes the source from its changed view ``new``.

    ``target`` and ``args``, without the tensor, are the call that made the view,
        ``base``
    is the source before. None if the inverse depends on extents, or if there is none:
    several views, or a possible copy.
    """
    if target in ("aten.detach.default", "aten.alias.default"):
        return "aten.alias.default", {"self": new}
    if target in _PARTS:
        return _PARTS[target], {"self": base, "src": new, **args}
    if target in _TRANSPOSES:
        return target, {"self": new, **args}
    if target == "aten.permute.default":
        order = [new.axis(dim) for dim in args["dims"]]
        dims = [order.index(axis) for axis in range(len(order))]
        return target, {"self": new, "dims": dims}
    return None


def written_back(target: str, args: Arguments, base: Value, new: Value) -> Call | None:
    """Return the inverse of a view, including reshapes if extents are fixed."""
    if RULES[target].is_alias:
        return "aten.alias.default", {"self": new}
    fixed = base.dims is not None and all(isinstance(d, int) for d in base.dims)
    if target in _SHAPES and fixed:
        return "aten.view.default", {"self": new, "size": list(base.dims or ())}
    return inverse_view(target, dict(args), base, new)


#: The longest chain of views that is recomputed.
_DEEPEST = 16


@dataclass
class Frame:
    """The values of one graph by name, at the current point of the program.

    A program may change a tensor in place. The result of such a call is an alias of the
    tensor, and all aliases have the new value. The bases of a view change too, and so
    do other views of them: these are ``stale`` and must not be read.
    """

    meta: Mapping[str, Any]
    out: Nodes
    #: The number of enclosing graphs.
    depth: int = 0
    values: dict[str, Value] = field(default_factory=dict)
    #: The first name of a tensor with several names.
    same: dict[str, str] = field(default_factory=dict)
    #: The base of each view, and the tensors that share a base's memory.
    base: dict[str, str] = field(default_factory=dict)
    shared: dict[str, list[str]] = field(default_factory=dict)
    #: The source of each view, the target that created it, and its other arguments.
    origin: dict[str, tuple[str, str, Arguments]] = field(default_factory=dict)
    #: Operands that subgraphs changed in place: value before and after.
    writes: list[tuple[Value, Value]] = field(default_factory=list)
    #: The error for reading a value.
    stale: dict[str, Problem] = field(default_factory=dict)

    def value(self, name: str) -> Value:
        """Return the value called ``name``.

        Raises:
            InvalidModel: there is no such value.
            UnsupportedModel: an alias was changed in place.
        """
        first = self.same.get(name, name)
        if first in self.stale:
            raise UnsupportedModel([self.stale[first]])
        if first not in self.values:
            raise InvalidModel(f"expected a value called {shown(name)}, found none")
        return self.values[first]

    def view(self, name: str, of: str, target: str, args: Arguments) -> None:
        """Record that the tensor ``name`` may be a view of the tensor ``of``."""
        of = self.same.get(of, of)
        base = self.base[name] = self.base.get(of, of)
        self.shared.setdefault(base, [of]).append(name)
        self.origin[name] = (of, target, args)

    def change(self, name: str, value: Value, node: str, target: str) -> str:
        """Record that ``node`` changed the tensor ``name`` in place to ``value``.

        Returns the first name of that tensor.
        """
        first = self.same.get(name, name)
        self.values[first] = value
        base = self.base.get(first, first)
        message = (
            f"a change in place of {shown(name)} changes another value that is read "
            "later; export after run_decompositions()"
        )
        for other in self.shared.pop(base, ()):
            if other != first:
                self.stale[other] = Problem(message, node, target)
        self.shared[base] = [first]
        return first

    def retaken(self, name: str) -> list[tuple[str, str, str, Arguments]]:
        """Return the stale views to recompute before ``name`` can be read.

        Each has its name, that of its source, the target and other arguments. Empty if
        ``name`` is not stale, or cannot be recomputed.
        """
        chain: list[tuple[str, str, str, Arguments]] = []
        last = self.same.get(name, name)
        while last in self.stale:
            base, target, args = self.origin.get(last, ("", "", ()))
            if target not in VIEWS or len(chain) >= _DEEPEST:
                return []
            chain.append((last, base, target, args))
            last = base
        return chain[::-1]

    def refresh(self, name: str, value: Value) -> None:
        """Set the new value of a tensor after a view of it was changed."""
        self.values[name] = value
        self.stale.pop(name, None)
        self.shared.setdefault(self.base.get(name, name), []).append(name)
