"""Order of module inputs and outputs, with the main data flow first.

The inputs and outputs of the model itself keep the order of the file.
"""

from collections.abc import Sequence

from burn.dtypes import is_float
from burn_import.codegen.naming.function_names import Nouns
from burn_import.codegen.naming.input_roles import input_roles
from burn_import.structure import ModuleNode, SubmoduleCall, Tree
from burn_import.structure.module_tree import IfCall, calls_of

Order = list[int]


def order_boundaries(tree: Tree, nouns: Nouns) -> None:
    """Sort the inputs and outputs of all modules and of their calls.

    The first instance of a class decides for all, so that they stay equal. Branches
    of an ``If`` keep their order.
    """
    fixed = {
        id(tree.model[id(call.part)])
        for part in tree.parts
        for item in part.items
        if isinstance(item, IfCall)
        for call in calls_of(item)
    }
    orders: dict[int, tuple[Order, Order]] = {}
    for part in tree.parts:
        model = tree.model[id(part)]
        free = part.path and not model.sequence and id(model) not in fixed
        if free and id(model) not in orders:
            orders[id(model)] = _orders(model, tree.root, nouns)
    for part in tree.parts:
        for item in part.items:
            if isinstance(item, SubmoduleCall):
                _arrange(item, orders.get(id(tree.model[id(item.part)])))


def _arrange(call: SubmoduleCall, orders: tuple[Order, Order] | None) -> None:
    if orders is None:
        return
    call.inputs = [call.inputs[index] for index in orders[0]]
    call.outputs = [call.outputs[index] for index in orders[1]]
    call.part.inputs, call.part.outputs = call.inputs, call.outputs


def _orders(part: ModuleNode, root: ModuleNode, nouns: Nouns) -> tuple[Order, Order]:
    value_names = nouns.inside(part)
    streams = [
        index for index, name in enumerate(part.outputs) if name not in value_names
    ]
    outputs = _order_like(part.outputs, root.outputs)
    if len(streams) == 1:
        outputs.sort(key=lambda index: index != streams[0])
    inputs = _order_like(part.inputs, root.inputs)
    main = _main_input(part, value_names, part.outputs[outputs[0]] if outputs else "")
    inputs.sort(key=lambda index: index != main)
    return inputs, outputs


def _order_like(names: Sequence[str], listed: Sequence[str]) -> Order:
    """Return the order of ``names`` in which those in ``listed`` follow its order."""
    rank = {name: index for index, name in enumerate(listed)}
    positions = [index for index, name in enumerate(names) if name in rank]
    order = list(range(len(names)))
    ranked = sorted(positions, key=lambda index: rank[names[index]])
    for index, other in zip(positions, ranked, strict=True):
        order[index] = other
    return order


def _main_input(part: ModuleNode, value_names: dict[str, str], result: str) -> int:
    """Return the index of the main data input, -1 if all inputs have nouns.

    It is the first unnamed floating input, preferably with the rank of the result
    and without another role.
    """
    types = part.graph.types
    words = input_roles(part)
    streams = [
        index
        for index, name in enumerate(part.inputs)
        if name not in value_names and is_float(types[name].dtype)
    ]
    rank = len(types[result].shape or ()) if result else 0

    def weight(index: int) -> tuple[bool, bool]:
        name = part.inputs[index]
        return name in words, len(types[name].shape or ()) != rank

    return min(streams, key=weight, default=-1)
