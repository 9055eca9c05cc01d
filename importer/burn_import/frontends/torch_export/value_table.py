"""The values of one graph of a program, and which of them are one tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from burn.record.errors import shown
from burn_import.frontends.torch_export.builder import Nodes, Value
from burn_import.frontends.torch_export.view_writeback import VIEWS, Arguments
from burn_ir import InvalidModel, UnsupportedModel
from burn_ir.errors import Problem

#: How many views of views are taken again.
_DEEPEST = 16


@dataclass
class Frame:
    """The values of one graph by name, as they are at this point of it.

    A program may change a tensor in place. The result of such a call is another name of
    the same tensor, whose value is the new one under all its names. What it is a view
    of is changed too, and other views of that: these are ``stale`` from then on, and
    must not be read.
    """

    meta: Mapping[str, Any]
    out: Nodes
    #: How many graphs are around this one.
    depth: int = 0
    values: dict[str, Value] = field(default_factory=dict)
    #: The first name of the tensor that has several.
    same: dict[str, str] = field(default_factory=dict)
    #: Whose memory each tensor shares, and the tensors that share it.
    base: dict[str, str] = field(default_factory=dict)
    shared: dict[str, list[str]] = field(default_factory=dict)
    #: What each view was made of, by which call, with which other arguments.
    origin: dict[str, tuple[str, str, Arguments]] = field(default_factory=dict)
    #: Operands that graphs inside of a call changed in place: value before and after.
    writes: list[tuple[Value, Value]] = field(default_factory=list)
    #: What is wrong with reading a value.
    stale: dict[str, Problem] = field(default_factory=dict)

    def value(self, name: str) -> Value:
        """The value called ``name``.

        Raises:
            InvalidModel: there is none.
            UnsupportedModel: another value was changed in place that it is a view of.
        """
        first = self.same.get(name, name)
        if first in self.stale:
            raise UnsupportedModel([self.stale[first]])
        if first not in self.values:
            raise InvalidModel(f"expected a value called {shown(name)}, found none")
        return self.values[first]

    def view(self, name: str, of: str, target: str, args: Arguments) -> None:
        """Note that the tensor ``name`` may be a view of the tensor ``of``."""
        of = self.same.get(of, of)
        base = self.base[name] = self.base.get(of, of)
        self.shared.setdefault(base, [of]).append(name)
        self.origin[name] = (of, target, args)

    def change(self, name: str, value: Value, node: str, target: str) -> str:
        """Note that ``node`` changed the tensor ``name`` in place to ``value``.

        The first name of that tensor.
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
        """Return the views to take again before ``name`` can be read.

        Each has its name, that of what it is a view of, the target and other arguments.
        None if ``name`` is not stale, or may be a copy.
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
        """Give a tensor that a view of was changed its new value."""
        self.values[name] = value
        self.stale.pop(name, None)
        self.shared.setdefault(self.base.get(name, name), []).append(name)
