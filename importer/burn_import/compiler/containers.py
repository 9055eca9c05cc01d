"""Attributes of a class: modules, and the lists and dictionaries they stand in."""

from __future__ import annotations

from collections.abc import Mapping

from burn_import.compiler.names import literal
from burn_import.structure import Path


class Containers:
    """The fields of one class, as ``__init__`` makes and ``__call__`` reads them.

    Children numbered from 0 without a gap are an ``nn.ModuleList``; with gaps, or with
    names, an ``nn.ModuleDict``: keys of the record stay what they were.
    """

    def __init__(self, entries: Mapping[Path, str]) -> None:
        self.entries = dict(entries)
        self.children: dict[Path, dict[str, None]] = {}
        for path in entries:
            for length in range(len(path)):
                self.children.setdefault(path[:length], {})[path[length]] = None

    def fields(self) -> list[str]:
        """The assignments of ``__init__``."""
        return [
            f"self.{name} = {self.text((name,))}" for name in self.children.get((), ())
        ]

    def text(self, path: Path) -> str:
        """The source that makes what stands at ``path``."""
        if path in self.entries:
            return self.entries[path]
        if self.is_list(path):
            texts = [
                self.text((*path, str(i))) for i in range(len(self.children[path]))
            ]
            if len(texts) > 1 and len(set(texts)) == 1:
                return f"nn.ModuleList({texts[0]} for _ in range({len(texts)}))"
            return f"nn.ModuleList([{', '.join(texts)}])"
        order = sorted(self.children[path], key=_natural)
        pairs = ", ".join(f"{literal(n)}: {self.text((*path, n))}" for n in order)
        return f"nn.ModuleDict({{{pairs}}})"

    def is_list(self, path: Path) -> bool:
        """Whether the children at ``path`` are numbered without a gap."""
        names = self.children[path]
        return set(names) == {str(i) for i in range(len(names))}

    def is_uniform(self, path: Path) -> bool:
        """Whether all children at ``path`` are made by the same source."""
        return len({self.text((*path, name)) for name in self.children[path]}) == 1

    def access(self, path: Path) -> str:
        """The source that reads what stands at ``path``: ``self.layer[0]``."""
        text = f"self.{path[0]}"
        for length in range(1, len(path)):
            name = path[length]
            inside = name if self.is_list(path[:length]) else literal(name)
            text += f"[{inside}]"
        return text


def _natural(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isdigit() else (-1, name)
