"""Tree of modules from dotted keys, with attribute names that Python allows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from burn.dtypes import DType
from burn_import.provenance.path_segments import Path
from burn_import.tracing.identifiers import Namespace, attribute

#: Keys with more segments have their last ones joined: Python limits nesting.
DEEPEST = 32
#: A list may have this many indices, plus four times the number of its modules.
_SPARE_INDICES = 64
_NUMBER = re.compile(r"0|[1-9][0-9]{0,5}")


@dataclass(eq=False)
class Stored:
    """A tensor: its key in the file, its dtype, its shape and its attribute.

    ``access`` is the expression that reads it: ``self.layers[0].weight``.
    """

    key: str
    dtype: DType
    shape: tuple[int, ...]
    attribute: str = ""
    access: str = ""


@dataclass(eq=False)
class Node:
    """A module: its path, and its tensors and child modules by name in the file."""

    path: Path = ()
    tensors: dict[str, Stored] = field(default_factory=dict)
    children: dict[str, Node] = field(default_factory=dict)
    #: Whether the children are the items of a list.
    listed: bool = False

    def insert(self, segments: list[str], stored: Stored) -> None:
        """Insert a tensor at the module that ``segments`` lead to."""
        node = self
        for segment in segments[:-1]:
            node = node.children.setdefault(segment, Node())
        node.tensors[segments[-1]] = stored

    @property
    def may_be_list(self) -> bool:
        """Return whether all children are numbered modules and there are no tensors."""
        return not self.tensors and _is_list(self.children)

    def settle(self, path: Path = (), access: str = "self") -> None:
        """Assign attributes to all descendants of the module read by ``access``."""
        self.path = path
        inner = [child.may_be_list for child in self.children.values()]
        self.listed = self.may_be_list and (bool(path) or not any(inner))
        names = Namespace()
        for name, child in self.children.items():
            own = name if self.listed else names.unique(attribute(name))
            inner_access = f"{access}[{own}]" if self.listed else f"{access}.{own}"
            child.settle((*path, own), inner_access)
        for name, stored in self.tensors.items():
            stored.attribute = names.unique(attribute(name, "tensor"))
            stored.access = f"{access}.{stored.attribute}"

    def stored(self) -> Iterator[tuple[Stored, str]]:
        """Yield every tensor below this module, with its key in the record."""
        for stored in self.tensors.values():
            yield stored, ".".join((*self.path, stored.attribute))
        for child in self.children.values():
            yield from child.stored()


def tree_of(tensors: Iterable[tuple[str, DType, tuple[int, ...]]]) -> Node:
    """Return the root of the tree of modules that hold these tensors."""
    root = Node()
    for key, dtype, shape in tensors:
        segments = key.split(".")
        if len(segments) > DEEPEST:
            segments[DEEPEST - 1 :] = ["_".join(segments[DEEPEST - 1 :])]
        root.insert(segments, Stored(key, dtype, shape))
    root.settle()
    return root


def _is_list(names: Iterable[str]) -> bool:
    """Return whether children of these names are the items of a list."""
    segments = list(names)
    if not segments or not all(_NUMBER.fullmatch(name) for name in segments):
        return False
    return max(map(int, segments)) < 4 * len(segments) + _SPARE_INDICES
