"""Lists of equal blocks whose length can vary, since each maps a type to itself."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from burn_import.codegen import syntax
from burn_import.codegen.class_text import ClassText
from burn_import.codegen.module.constructor_calls import ConstructorCalls, Slot
from burn_import.codegen.module.module_reads import Block, blocks, code_blocks
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
    nodes = [node for block in code_blocks(text) for node in ast.walk(block.tree)]
    uses = [node for node in nodes if _source_of(node, name) == f"self.{name}"]
    if len(uses) != 1:
        return False
    for node in nodes:
        if isinstance(node, ast.Call) and node.func is uses[0]:
            return True
        if isinstance(node, ast.For) and node.iter is uses[0]:
            return isinstance(node.target, ast.Name) and not _collects(node)
    return False


def _source_of(node: ast.AST, name: str) -> str:
    """Return the source of an expression if it reads the attribute ``name``."""
    is_read = isinstance(node, ast.Attribute) and node.attr == name
    return ast.unparse(node) if is_read else ""


def _collects(loop: ast.For) -> bool:
    """Return whether a loop appends to a list."""
    calls = (node for node in ast.walk(loop) if isinstance(node, ast.Call))
    functions = (call.func for call in calls)
    return any(isinstance(f, ast.Attribute) and f.attr == "append" for f in functions)


def _is_read_elsewhere(calls: ConstructorCalls, owner: str, path: Path) -> bool:
    """Return whether another class, or a tie, refers to a list member."""
    inner = ".".join(("", *path[-2:]))
    for name, constructor in calls.constructors.items():
        text = constructor.text
        nodes = [node for block in blocks(text) for node in ast.walk(block.tree)]
        reads = (_source_of(node, path[-1]) for node in nodes)
        if len(path) > 1 and any(read.endswith(inner) for read in reads):
            return True
        fields = ast.walk(Block(name, text.fields).tree) if name == owner else ()
        items = (node.value for node in fields if isinstance(node, ast.Subscript))
        if any(_source_of(item, path[-1]) == f"self.{path[-1]}" for item in items):
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
