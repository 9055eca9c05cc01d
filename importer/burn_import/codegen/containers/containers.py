"""Attributes of a class: modules, lists of modules and holder classes."""

import ast
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from itertools import groupby

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.containers.progressions import longest_run, progression
from burn_import.codegen.syntax import ARRAYS, called_name, expression_of
from burn_import.provenance.path_segments import Path
from burn_import.structure.numeric_segments import is_sparse
from burn_import.tracing.identifiers import Namespace, camel, singular

#: Minimum run of equal modules that is written as a comprehension.
MANY = 4
#: The most different modules of a short chain: the first block of a stage and the rest.
_MOST_DIFFERENT = 2


@dataclass
class SharedHolder:
    """A class of arrays whose sizes are parameters of its constructor.

    ``arguments`` are those of each constructor call, by the fields with numbers.
    ``name`` is the class, once a call of it was written.
    """

    fields: list[str]
    constructor: str
    labels: list[str]
    guards: dict[str, str]
    arguments: dict[tuple[str, ...], str]
    name: str = ""


class Holders:
    """Classes that only contain modules, for scopes that run no nodes.

    ``register`` receives the constructors of ``shared`` classes when they get names.
    """

    def __init__(
        self,
        names: Namespace,
        shared: Iterable[SharedHolder] = (),
        register: Callable[[SharedHolder], None] | None = None,
    ) -> None:
        self.names = names
        self.shared = {key: one for one in shared for key in one.arguments}
        self.register = register
        self.class_by_fields: dict[tuple[str, ...], str] = {}
        self.fields_by_class: dict[str, list[str]] = {}
        self.constructors: dict[str, str] = {}

    def call(self, name: str, fields: list[str]) -> str:
        """Return a constructor call of the class with these fields.

        A new class is named after ``name``.
        """
        key = tuple(fields)
        shared = self.shared.get(key)
        if shared is not None:
            return f"{self._shared_class(name, shared)}{shared.arguments[key]}"
        if key not in self.class_by_fields:
            self.class_by_fields[key] = self.names.unique(camel(name, "Part"))
            self.fields_by_class[self.class_by_fields[key]] = fields
        return f"{self.class_by_fields[key]}()"

    def _shared_class(self, name: str, shared: SharedHolder) -> str:
        if not shared.name:
            shared.name = self.names.unique(camel(name, "Part"))
            self.fields_by_class[shared.name] = shared.fields
            self.constructors[shared.name] = shared.constructor
            if self.register is not None:
                self.register(shared)
        return shared.name

    def take(self, name: str) -> ClassText | None:
        """Remove and return the class ``name``, or None."""
        fields = self.fields_by_class.pop(name, None)
        if fields is None:
            return None
        constructor = self.constructors.get(name, "")
        return ClassText(name, "", fields, constructor=constructor)


class Containers:
    """The fields of one class, as assigned in ``__init__`` and read by ``__call__``.

    Numbered children are an ``nn.ModuleList`` if they have one class, else an
    ``nn.ModuleTuple``, with ``nn.Identity`` in the gaps, so that record keys stay
    the same.
    """

    def __init__(self, entries: Mapping[Path, str], holders: Holders) -> None:
        self.entries: dict[Path, str] = {}
        self.holders = holders
        self.children: dict[Path, dict[str, None]] = {}
        self.texts: dict[Path, str] = {}
        #: Lists that are called as a whole.
        self.chains: set[Path] = set()
        #: Lists that get further members, which are not called.
        self.growing: set[Path] = set()
        for path, text in entries.items():
            self.add(path, text)

    def add(self, path: Path, text: str) -> None:
        """Add the field at ``path`` with the constructor ``text``."""
        self.entries[path] = text
        for length in range(len(path)):
            self.children.setdefault(path[:length], {})[path[length]] = None
            self.texts.pop(path[:length], None)

    def names(self, path: Path) -> Collection[str]:
        """Return the names of the children of the container at ``path``."""
        return self.children.get(path, ())

    def has_room(self, path: Path) -> bool:
        """Return whether ``path`` is free and no module or settled list encloses it."""
        inner = [path[:length] for length in range(1, len(path))]
        is_inside_module = any(part in self.entries for part in inner)
        # A list whose source was already requested must not change.
        settled = any(part in self.texts for part in inner)
        mixed = any(
            self.is_list(part) != path[len(part)].isdigit()
            for part in inner
            if part in self.children
        )
        sparse = any(
            is_sparse(map(int, {*self.names(part), path[len(part)]}))
            for part in inner
            if path[len(part)].isdigit() and not mixed
        )
        is_occupied = path in self.entries or path in self.children
        return not (is_inside_module or settled or mixed or sparse or is_occupied)

    def fields(self, path: Path = ()) -> list[str]:
        """Return the assignments of ``__init__``."""
        names = self.children.get(path, ())
        return [f"self.{_attribute(n)} = {self.text((*path, n))}" for n in names]

    def text(self, path: Path) -> str:
        """Return the constructor source of the container at ``path``."""
        if path not in self.texts:
            self.texts[path] = self.entries.get(path) or self._container(path)
        return self.texts[path]

    def _container(self, path: Path) -> str:
        if not self.is_list(path):
            words = [segment for segment in path if not segment.isdigit()]
            word = singular(words[-1]) if path[-1].isdigit() else words[-1]
            return self.holders.call(word, self.fields(path))
        names = self.children[path]
        count = self.length(path)
        if self.is_of_tensors(path):
            boxes = [
                self.text((*path, str(i))) if str(i) in names else "None"
                for i in range(count)
            ]
            return f"nn.ParameterList([{', '.join(_merge_runs(boxes))}])"
        texts = [
            self.text((*path, str(i))) if str(i) in names else "nn.Identity()"
            for i in range(count)
        ]
        if path in self.chains:
            return f"nn.Sequential({', '.join(_sequence_items(texts))})"
        if len(set(texts)) > 1 and _one_class(texts):
            each = progression(texts) if count >= MANY else ""
            if each:
                return f"nn.ModuleList({each} for i in range({count}))"
            return f"nn.ModuleList([{', '.join(_merge_runs(texts))}])"
        if len(set(texts)) > 1 or (count == 1 and "ModuleTuple" in texts[0]):
            return f"nn.ModuleTuple({', '.join(texts)})"
        if count > 1:
            return f"nn.ModuleList({texts[0]} for _ in range({count}))"
        return f"nn.ModuleList([{texts[0]}])"

    def is_comprehension(self, path: Path) -> bool:
        """Return whether a list is one comprehension, or a short chain of modules."""
        call = expression_of(self.text(path))
        if called_name(call) == "nn.Sequential":
            names = self.children[path]
            texts = [self.text((*path, str(i))) for i in range(len(names))]
            runs = [text for text, _ in groupby(texts)]
            return len(runs) <= _MOST_DIFFERENT or len(_sequence_items(texts)) == 1
        match call:
            case ast.Call(args=[ast.GeneratorExp()]):
                return called_name(call) == "nn.ModuleList"
        return False

    def is_of_tensors(self, path: Path) -> bool:
        """Return whether a list has only parameters and buffers."""
        entries = [self.entries.get((*path, name)) for name in self.children[path]]
        return all(one and called_name(expression_of(one)) in ARRAYS for one in entries)

    def length(self, path: Path) -> int:
        """Return the length of the list at ``path``, including gaps."""
        return max(map(int, self.children[path])) + 1

    def is_list(self, path: Path) -> bool:
        """Return whether the children at ``path`` are numbered."""
        return all(name.isdigit() for name in self.children[path])

    def is_alike(self, path: Path, start: int = 0, stop: int | None = None) -> bool:
        """Return whether children ``start`` to ``stop`` (exclusive) share a class."""
        numbers = [int(name) for name in self.children[path]]
        last = max(numbers) + 1 if stop is None else stop
        chosen = [n for n in numbers if start <= n < last]
        outlines = {self.outline((*path, str(n))) for n in chosen}
        texts = [one for one in outlines if isinstance(one, str)]
        return len(outlines) == 1 or (len(texts) == len(outlines) and _one_class(texts))

    def is_uniform(self, path: Path) -> bool:
        """Return whether all children have the same constructor source."""
        return len({self.outline((*path, name)) for name in self.children[path]}) == 1

    def outline(self, path: Path) -> Hashable:
        """Return a key of the source at ``path``; equal keys have equal source."""
        if path in self.entries:
            return self.entries[path]
        names = sorted(self.children[path])
        return tuple((name, self.outline((*path, name))) for name in names)

    def has(self, path: Path, start: int, stop: int) -> bool:
        """Return whether ``path`` is a list with all children in the range."""
        names = self.children.get(path, {})
        return self.is_list(path) and all(str(i) in names for i in range(start, stop))

    def access(self, path: Path) -> str:
        """Return the source that reads the field at ``path``: ``self.layer[0]``."""
        text = f"self.{_attribute(path[0])}"
        for length in range(1, len(path)):
            name = path[length]
            is_module = path[:length] in self.children
            inside = self.is_list(path[:length]) if is_module else name.isdigit()
            text += f"[{name}]" if inside else f".{_attribute(name)}"
        return text


def _merge_runs(texts: Sequence[str]) -> Iterator[str]:
    """Yield ``texts``, with long runs merged to comprehensions.

    The calls of a run are equal, or their numbers are arithmetic progressions.
    """
    start = 0
    while start < len(texts):
        count, each = longest_run(texts[start:])
        if count >= MANY:
            index = "_" if each == texts[start] else "i"
            yield f"*({each} for {index} in range({count}))"
        else:
            count = 1
            yield texts[start]
        start += count


def _sequence_items(texts: Sequence[str]) -> list[str]:
    """Return the arguments of ``nn.Sequential``, with comprehensions of many layers."""
    return list(_merge_runs(texts))


def _one_class(texts: Sequence[str]) -> bool:
    """Return whether all are calls of one class, which may differ in arguments."""
    heads = {text.partition("(")[0] for text in texts}
    return len(heads) == 1 and heads.isdisjoint({"nn.ModuleList", "nn.ModuleTuple"})


def _attribute(name: str) -> str:
    """Return a field's attribute name; numbers get the prefix ``part_``."""
    return f"part_{name}" if name.isdigit() else name
