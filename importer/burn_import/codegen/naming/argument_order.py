"""The order of what modules are given and give: the main stream comes first.

What the model itself is given or gives stands in the order of the file.
"""

from __future__ import annotations

from collections.abc import Sequence

from burn.dtypes import is_float
from burn_import.codegen.naming.function_names import Nouns, tasks
from burn_import.structure import Call, Part, Tree
from burn_import.structure.module_tree import Fork, calls_of

Order = list[int]


def order_boundaries(tree: Tree, nouns: Nouns) -> None:
    """Put the inputs and outputs of all modules, and of their calls, in order.

    The first instance of a class decides for all: they stay equal. What the branches
    of an ``If`` are stays as it is.
    """
    fixed = {
        id(tree.model[id(call.part)])
        for part in tree.parts
        for item in part.items
        if isinstance(item, Fork)
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
            if isinstance(item, Call):
                _arrange(item, orders.get(id(tree.model[id(item.part)])))


def _arrange(call: Call, orders: tuple[Order, Order] | None) -> None:
    if orders is None:
        return
    call.inputs = [call.inputs[place] for place in orders[0]]
    call.outputs = [call.outputs[place] for place in orders[1]]
    call.part.inputs, call.part.outputs = call.inputs, call.outputs


def _orders(part: Part, root: Part, nouns: Nouns) -> tuple[Order, Order]:
    known = nouns.inside(part)
    streams = [place for place, name in enumerate(part.outputs) if name not in known]
    outputs = _as_listed(part.outputs, root.outputs)
    if len(streams) == 1:
        outputs.sort(key=lambda place: place != streams[0])
    inputs = _as_listed(part.inputs, root.inputs)
    main = _main(part, known, part.outputs[outputs[0]] if outputs else "")
    inputs.sort(key=lambda place: place != main)
    return inputs, outputs


def _as_listed(names: Sequence[str], listed: Sequence[str]) -> Order:
    """``names`` as they stand, but those of ``listed`` as they stand there."""
    rank = {name: place for place, name in enumerate(listed)}
    places = [place for place, name in enumerate(names) if name in rank]
    order = list(range(len(names)))
    ranked = sorted(places, key=lambda place: rank[names[place]])
    for place, other in zip(places, ranked, strict=True):
        order[place] = other
    return order


def _main(part: Part, known: dict[str, str], result: str) -> int:
    """The place of the main stream among the inputs, -1 if all have nouns.

    It is what is read first of those with as many axes as the result.
    """
    types = part.graph.types
    words = tasks(part)
    streams = [
        place
        for place, name in enumerate(part.inputs)
        if name not in known and is_float(types[name].dtype)
    ]
    rank = len(types[result].shape or ()) if result else 0

    def weight(place: int) -> tuple[bool, bool]:
        name = part.inputs[place]
        return name in words, len(types[name].shape or ()) != rank

    return min(streams, key=weight, default=-1)
