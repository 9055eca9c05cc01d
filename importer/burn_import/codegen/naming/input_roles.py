"""Roles of a module's inputs, from the operators that read them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from burn.dtypes import is_float
from burn_import.codegen.naming.vocabulary import result_of
from burn_import.codegen.printing.consumer_words import INDICES
from burn_import.structure import Instruction, ModuleNode
from burn_import.structure.module_tree import calls_of
from burn_ir.graph import Node

#: Operators whose second operand has positions, and views of positions.
INDEXED = frozenset(
    {"Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND"}
)
VIEWS = frozenset({"Unsqueeze", "Squeeze", "Reshape", "Expand"})


def input_roles(part: ModuleNode) -> dict[str, str]:
    """Return the roles of a module's inputs, where they are unambiguous.

    An input that is only added once is a residual; one that only keys and values
    are computed from is a context; one that is read as positions alone is indices.
    """
    uses: dict[str, list[str]] = {}
    for item in reversed(part.items):
        for name, use in _uses(part, item, uses):
            uses.setdefault(name, []).append(use)
    roles = {}
    for name in part.inputs if len(part.inputs) > 1 else ():
        own = uses.get(name, [])
        if own == ["residual"]:
            roles[name] = "residual"
        elif own and set(own) <= {"key", "value"}:
            roles[name] = own[0] if len(set(own)) == 1 else "context"
        elif set(own) == {INDICES}:
            roles[name] = INDICES
    counts = Counter(roles.values())
    return {
        n: role for n, role in roles.items() if counts[role] == 1 or role == INDICES
    }


def _uses(
    part: ModuleNode, item: Instruction, later: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, str]]:
    """Yield the values that an instruction reads, each with its use.

    ``later`` has the uses by later instructions.
    """
    if not isinstance(item, Node):
        yield from ((name, "") for call in calls_of(item) for name in call.inputs)
    elif item.op.onnx != "Shape":
        use, index = _result_use(part, item), _index_operand(item, later)
        for position, name in enumerate(item.inputs):
            if name is not None:
                yield name, INDICES if position == index else use


def _result_use(part: ModuleNode, node: Node) -> str:
    """Return what operands are used for: a residual, or the result of the layer."""
    types = [part.graph.type(name) for name in node.inputs]
    floats = all(one is not None and is_float(one.dtype) for one in types)
    if node.op.onnx == "Add" and floats:
        return "residual"
    return result_of(part.layer_paths.get(id(node), ("",))[-1])


def _index_operand(node: Node, later: Mapping[str, Sequence[str]]) -> int | None:
    """Return which operand has positions: the only one of views of positions."""
    if node.op.onnx in INDEXED:
        return 1
    is_view = node.op.onnx in VIEWS and set(later.get(node.output, [])) == {INDICES}
    return 0 if is_view else None
