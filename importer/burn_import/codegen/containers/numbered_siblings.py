"""Numbered attributes ``layer1``, ``layer2``, ... of one class as a list ``layers``.

Record keys stay the same: the class sets ``record_names = {"layers": "layer{1}"}``.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from burn_import.codegen.containers.containers import MANY, Containers
from burn_import.provenance.path_segments import Path
from burn_import.structure.module_tree import ModuleNode, SubmoduleCall, calls_of
from burn_import.tracing.identifiers import MEMBERS, plural
from burn_import.tracing.trace import Block, ModuleCall, Repetition, blocks_of

_NUMBERED = re.compile(r"(\w*[A-Za-z]|\w+_)(0|[1-9]\d*)", re.ASCII)
#: The fewest modules ``stage1_0``, ``stage1_1``, ... of a list, instead of ``MANY``.
_MANY_STAGED = 3
_RECORD_NAME = re.compile(r"(\w+)\{(\d+)\}", re.ASCII)


@dataclass(frozen=True)
class Siblings:
    """The modules ``prefix + str(first)`` and following as the list ``name``."""

    name: str
    prefix: str
    first: int

    @property
    def record_name(self) -> str:
        """Return the record keys of the members for ``Module.record_names``."""
        return f"{self.prefix}{{{self.first}}}"

    def moved(self, path: Path) -> Path:
        """Return ``path``, redirected into the list if it leads to a member."""
        match = _NUMBERED.fullmatch(path[0]) if path else None
        if match is None or match[1] != self.prefix or int(match[2]) < self.first:
            return path
        return (self.name, str(int(match[2]) - self.first), *path[1:])


def siblings_in(record_names: Mapping[str, str]) -> list[Siblings]:
    """Return the lists that a class's ``record_names`` describe."""
    matches = {n: _RECORD_NAME.fullmatch(text) for n, text in record_names.items()}
    return [Siblings(n, m[1], int(m[2])) for n, m in matches.items() if m is not None]


def numbered_siblings(part: ModuleNode, modules: Mapping[Path, str]) -> list[Siblings]:
    """Return the modules of ``part`` that may become lists.

    ``modules`` is the source of each module, by its path. A list's modules have one
    class and consecutive numbers, and no path leads into them.
    """
    numbers: dict[str, list[int]] = {}
    for name in _once_called_modules(part):
        match = _NUMBERED.fullmatch(name)
        if match is not None and (name,) in modules:
            numbers.setdefault(match[1], []).append(int(match[2]))
    reserved = {path[0] for path in modules} | MEMBERS
    return [
        Siblings(_list_name(prefix), prefix, own[0])
        for prefix, own in numbers.items()
        if len(own) >= (_MANY_STAGED if prefix.endswith("_") else MANY)
        and own == list(range(own[0], own[0] + len(own)))
        and _list_name(prefix) not in reserved
        and _is_spelled_so(prefix, part)
        and len([p for p in modules if _is_prefixed(p, prefix)]) == len(own)
        and _one_class([modules[f"{prefix}{number}",] for number in own])
    ]


def _list_name(prefix: str) -> str:
    """Return the list's name: ``blocks`` of ``block1``, ``res2`` of ``res2_0``."""
    name = prefix.rstrip("_")
    return name if name[-1:].isdigit() else plural(name)


def _is_spelled_so(prefix: str, part: ModuleNode) -> bool:
    """Return whether the author's names have the underscore of ``prefix``.

    ``part_0`` stands for ``0``, and the author's ``block-1`` is ``block_1`` here.
    """
    if not prefix.endswith("_"):
        return True
    spelled = f"{prefix[:-1]}-"
    return prefix != "part_" and not any(spelled in n for n in part.graph.constants)


def _once_called_modules(part: ModuleNode) -> Iterator[str]:
    """Yield the attributes of modules that ``part`` calls exactly once."""
    paths = [call.path for item in part.items for call in calls_of(item)]
    own = (part.layer_paths.get(id(node)) for node in part.nodes())
    inside = {path[0] for path in own if path}
    inside |= {path[0] for path in part.kept}
    inside |= {text.partition(".")[0] for text in part.reached.values()}
    for item in part.items:
        if isinstance(item, SubmoduleCall) and not item.part.sequence:
            name, *rest = item.path
            if not rest and name not in inside and paths.count(item.path) == 1:
                yield name


def _is_prefixed(path: Path, prefix: str) -> bool:
    match = _NUMBERED.fullmatch(path[0])
    return match is not None and match[1] == prefix


def _one_class(texts: Sequence[str]) -> bool:
    return len({text.partition("(")[0] for text in texts}) == 1


def moved_modules(
    modules: Mapping[Path, str], siblings: Sequence[Siblings]
) -> dict[Path, str]:
    """Return the source of modules by their paths in lists."""
    return {moved_path(path, siblings): text for path, text in modules.items()}


def moved_path(path: Path, siblings: Sequence[Siblings]) -> Path:
    """Return ``path``, redirected into a list that has its module."""
    for one in siblings:
        path = one.moved(path)
    return path


def move_calls(block: Block, siblings: Sequence[Siblings]) -> None:
    """Redirect the calls of ``block`` to the members of lists."""
    block.statements = [
        (
            replace(one, path=moved_path(one.path, siblings))
            if isinstance(one, ModuleCall)
            else one
        )
        for one in block.statements
    ]


def find_looped_lists(
    block: Block, containers: Containers, siblings: Sequence[Siblings]
) -> list[Siblings]:
    """Return the one-line lists whose members are called by loops or chains only."""
    loops = [one for one in block.statements if isinstance(one, Repetition)]
    whole = [m.path for loop in loops for m in loop.members if m.whole]
    others = {path[0] for path in _calls(block, set(whole))}
    return [
        one
        for one in siblings
        if (
            (one.name,) in containers.chains
            or (whole.count((one.name,)) == 1 and one.name not in others)
        )
        and containers.is_comprehension((one.name,))
    ]


def _calls(block: Block, lists: Collection[Path]) -> Iterator[Path]:
    """Yield the paths of all calls outside of loops through ``lists``."""
    for statement in block.statements:
        if isinstance(statement, ModuleCall):
            yield statement.path
        own = statement.members if isinstance(statement, Repetition) else []
        gone = {m.path for m in own if m.path in lists}
        for inner in blocks_of(statement):
            yield from (p for p in _calls(inner, lists) if p[:1] not in gone)
