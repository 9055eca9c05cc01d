"""Lists of equal blocks whose length can vary, since each maps a type to itself."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from burn_import.codegen import syntax
from burn_import.codegen.class_text import ClassText
from burn_import.codegen.module.constructor_calls import ConstructorCalls, Slot
from burn_import.provenance.path_segments import Path
from burn_import.structure import ModuleNode, Tree
from burn_import.tracing.identifiers import identifier, plural
from burn_ir.types import Type

#: List attributes whose length is called ``layers``.
LAYERS = frozenset({"h", "layer", "layers", "block", "blocks", "resblocks"})


@dataclass(frozen=True)
class Repeated:
    """A list of equal blocks: its path from the root, and the slot of its length."""

    path: Path
    slot: Slot

    @property
    def word(self) -> str:
        """Return the parameter name for the number of blocks."""
        name = self.path[-1]
        stem = name.rstrip("0123456789").rstrip("_")
        if stem in LAYERS:
            return f"layers{name[len(stem):]}"
        return identifier(name if name != stem or name.endswith("s") else plural(name))


def repeated_layers(calls: ConstructorCalls, tree: Tree) -> Iterator[Repeated]:
    """Yield the lists of blocks whose length can vary.

    The body only iterates over the whole list, and the result of a block has the
    type of its input.
    """
    for owner, constructor in calls.constructors.items():
        chains = calls.chains(owner)
        for statement in constructor.statements if chains else ():
            name, count = _comprehension(statement)
            if count is None or not _only_stepped_through(constructor.text, name):
                continue
            for chain in chains:
                path = (*(segment for site in chain for segment in site.path), name)
                number = calls.literal(Slot(owner, count, 0), chain)
                is_free = number and _maps_to_itself(tree, path, number[1])
                if number and is_free and not _is_read_elsewhere(calls, owner, path):
                    yield Repeated(path, number[0])


def _comprehension(statement: ast.stmt) -> tuple[str, ast.Call | None]:
    """Return attribute and ``range`` of a list of equal modules, else None."""
    name, call = syntax.assigned_field(statement)
    is_list = syntax.called_name(call) in ("nn.ModuleList", "nn.Sequential")
    if not isinstance(call, ast.Call) or not is_list or len(call.args) != 1:
        return name, None
    element, rounds = syntax.repetition(call.args[0])
    if rounds is None or not isinstance(element, ast.Call):
        return name, None
    return name, (
        syntax.range_call(rounds) if ast.unparse(rounds.target) == "_" else None
    )


def _only_stepped_through(text: ClassText, name: str) -> bool:
    """Return whether a class only runs one loop over the whole list.

    A loop that collects its results does not count, since their number would
    change.
    """
    lines = text.code
    uses = [at for at, line in enumerate(lines) if re.search(rf"self\.{name}\b", line)]
    if len(uses) != 1:
        return False
    line = lines[uses[0]]
    if f"self.{name}(" in line:
        return True
    if not re.fullmatch(rf"\s*for \w+ in self\.{name}:", line):
        return False
    return not any(".append(" in line for line in _indented(lines, uses[0]))


def _indented(lines: Sequence[str], start: int) -> Iterator[str]:
    """Yield the lines of the block after the line at ``start``."""
    depth = len(lines[start]) - len(lines[start].lstrip())
    for line in lines[start + 1 :]:
        if line.strip() and len(line) - len(line.lstrip()) <= depth:
            return
        yield line


def _is_read_elsewhere(calls: ConstructorCalls, owner: str, path: Path) -> bool:
    """Return whether another class, or a tie, refers to a list member."""
    inside = re.compile(rf"\.{path[-2]}\.{path[-1]}\b" if len(path) > 1 else r"(?!)")
    for name, constructor in calls.constructors.items():
        text = constructor.text
        if any(inside.search(line) for line in (*text.code, *text.fields)):
            return True
        own = rf"self\.{path[-1]}\[" if name == owner else r"(?!)"
        if any(re.search(own, line) for line in text.fields):
            return True
    return False


def _maps_to_itself(tree: Tree, path: Path, count: int) -> bool:
    """Return whether each module returns the type of the next one's input."""
    blocks = [part for part in tree.parts if part.path[:-1] == path]
    kinds = [_result(block) for block in blocks]
    if len(blocks) != count or count < 2 or None in kinds or len(set(kinds)) != 1:
        return False
    return all(kinds[0] in map(block.graph.type, block.inputs) for block in blocks)


def _result(block: ModuleNode) -> Type | None:
    """Return the type of the only result of a block without states, else None."""
    kind = block.graph.type(block.outputs[0]) if len(block.outputs) == 1 else None
    is_open = kind is None or kind.shape is None or bool(block.states)
    return None if is_open else kind
