"""Branches whose condition is known only at run time."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from burn_import.frontends.torch_export.builder import BOOL, Value
from burn_import.frontends.torchscript.control_flow.branch_results import (
    Container,
    Join,
    Side,
    fill,
    is_undecided,
)
from burn_import.frontends.torchscript.expressions import Expressions, Frame
from burn_import.frontends.torchscript.node_writer import NodeWriter
from burn_import.frontends.torchscript.primitives import Raised
from burn_import.frontends.torchscript.source_code import Rest
from burn_import.frontends.torchscript.values import (
    UNINITIALIZED,
    PyValue,
    Returned,
    TensorRef,
)
from burn_ir import RawNode, Type, UnsupportedModel


def left_by(node: ast.AST, frame: Frame) -> list[str]:
    """Return the names that a statement sets and that may be read after it."""
    read = _read_outside(node, frame)
    stored = dict.fromkeys(
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    )
    return [name for name in stored if name in read or name in frame.names]


def _read_outside(node: ast.AST, frame: Frame) -> set[str]:
    """Return the names that the function reads outside of a statement."""
    body = frame.function.node if frame.function is not None else node
    inside = {id(part) for part in ast.walk(node)}
    return {
        part.id
        for part in ast.walk(body)
        if isinstance(part, ast.Name)
        and isinstance(part.ctx, ast.Load)
        and id(part) not in inside
    }


def appended_names(body: Sequence[ast.stmt]) -> list[str]:
    """Return the names of lists that statements only append to.

    Functions that receive such a list may do more.
    """
    appended: dict[str, None] = {}
    others: set[str] = set()
    for statement in body:
        for part in ast.walk(statement):
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
                names = [x.id for x in part.args[:1] if isinstance(x, ast.Name)]
                if part.func.attr == "append":
                    appended.update(dict.fromkeys(names))
                elif part.func.attr in _IN_PLACE:
                    others.update(names)
    return [name for name in appended if name not in others]


#: The most branches, one inside the rest of the other, that are followed to the end.
_MOST_FOLLOWED = 4
#: Functions that change a list, except ``append``.
_IN_PLACE = frozenset(
    {
        *("pop", "insert", "extend", "_set_item", "reverse", "clear", "sort"),
        *("remove", "add_"),
    }
)


def local_names(node: ast.For | ast.While, frame: Frame) -> set[str]:
    """Return the names that each iteration sets before reading, and nothing else reads.

    They have values before the loop if its first iterations were unrolled.
    """
    read = _read_outside(node, frame)
    if isinstance(node, ast.While):
        read |= {part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)}
    local: set[str] = set()
    for statement in node.body:
        names = [part for part in ast.walk(statement) if isinstance(part, ast.Name)]
        read |= {n.id for n in names if isinstance(n.ctx, ast.Load)} - local
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            local |= {n.id for n in names if isinstance(n.ctx, ast.Store)} - read
    return local


def write_if(
    machine: Expressions, node: ast.If, frame: Frame, condition: Value
) -> Returned | None:
    """Write both blocks of a branch; only one if the other raises an error.

    Returns the result of the function if the branch was followed to its end.
    """
    sides = [
        side_of(machine, body, frame, machine.writer.inner())
        for body in (node.body, node.orelse)
    ]
    possible = [side for side in sides if side is not None]
    if len(possible) == len(sides):
        if not _logical(machine, node, frame, condition, possible):
            return _write_join(machine, node, frame, condition, possible)
    elif possible:
        machine.run(node.body if sides[0] is not None else node.orelse, frame)
    else:
        raise Raised("both sides of a branch raise an error")
    return None


def _write_join(
    machine: Expressions,
    node: ast.If,
    frame: Frame,
    condition: Value,
    sides: Sequence[Side],
) -> Returned | None:
    """Write a branch and bind its results, or return the result of the function.

    The latter where no value stands for both sides, such as None and a tensor, or lists
    of different lengths: each side is followed to the end of the function.
    """
    join = Join(machine, sides, frame.origin("branch"))
    first, second = (side.names for side in sides)
    both = [n for n in left_by(node, frame) if n in first and n in second]
    pending = join.pending({name: (first[name], second[name]) for name in both})
    if frame.rest is not None:
        undecided = [name for name, obj in pending.items() if is_undecided(obj)]
        is_read = undecided and _are_read(undecided, frame.rest.statements())
        if is_read or not join.has_equal_containers():
            with _following(machine):
                return Returned(write_return(machine, node, frame, condition))
    frame.names.update(join.write(pending, condition))
    return None


@contextmanager
def _following(machine: Expressions) -> Iterator[None]:
    """Count the branches whose sides are both followed to the end of the function.

    Raises:
        UnsupportedModel: they are inside each other, and each doubles the code.
    """
    if machine.followed == _MOST_FOLLOWED:
        raise UnsupportedModel(
            f"more than {_MOST_FOLLOWED} branches of a function leave None or a "
            "tensor, or lists of two lengths"
        )
    machine.followed += 1
    try:
        yield
    finally:
        machine.followed -= 1


def _are_read(names: Sequence[str], body: Sequence[ast.stmt]) -> bool:
    """Return whether statements read any of some names."""
    parts = (part for statement in body for part in ast.walk(statement))
    return any(
        isinstance(part, ast.Name)
        and isinstance(part.ctx, ast.Load)
        and part.id in names
        for part in parts
    )


def returns_early(node: ast.If, frame: Frame) -> bool:
    """Return whether a branch may end the function.

    TorchScript then declares names for the result, which are uninitialized on the other
    side, and tests after the branch which side ran.
    """
    names = (part.id for part in ast.walk(node) if isinstance(part, ast.Name))
    unset = any(frame.names.get(name) is UNINITIALIZED for name in names)
    return unset and frame.rest is not None


def write_return(
    machine: Expressions, node: ast.If, frame: Frame, condition: Value
) -> PyValue:
    """Return the result of a function that a branch may end: interpret both sides."""
    assert frame.rest is not None
    rest = frame.rest.statements()
    bodies = [[*node.body, *rest], [*node.orelse, *rest]]
    sides = [
        side_of(machine, body, known, machine.writer.inner(), to_end=True)
        for body, known in zip(bodies, _outcomes(frame, condition), strict=True)
    ]
    for side, other in zip(sides, reversed(bodies), strict=True):
        if side is None:
            ending = machine.run(other, frame)
            return None if ending is None else ending.value
    first, second = (side for side in sides if side is not None)
    kept = {id(obj) for obj in _containers(machine, _arguments(frame))}
    for side in (first, second):  # lists of the function are not read after it
        side.contents = [pair for pair in side.contents if id(pair[0]) in kept]
    join = Join(machine, [first, second], frame.origin("branch"))
    pending = join.pending({"result": (first.result, second.result)})
    if is_undecided(pending["result"]):
        raise UnsupportedModel("a function returns values of two kinds")
    return join.write(pending, condition)["result"]


def _arguments(frame: Frame) -> dict[str, PyValue]:
    """Return the arguments of the function; its code assigns to no parameter."""
    assert frame.function is not None
    names = [arg.arg for arg in frame.function.node.args.args]
    return {name: frame.names[name] for name in names if name in frame.names}


def _outcomes(frame: Frame, condition: Value) -> list[Frame]:
    """Return the frame as each side sees it: with the value of its condition."""
    return [
        replace(
            frame,
            names={
                name: outcome if _is_number(obj, condition) else obj
                for name, obj in frame.names.items()
            },
        )
        for outcome in (True, False)
    ]


def _is_number(obj: PyValue, number: Value) -> bool:
    return isinstance(obj, Value) and obj.is_number and obj.name == number.name


#: The most nodes that both sides of ``and`` and ``or`` may compute eagerly.
_CHEAP = 8


def _logical(
    machine: Expressions,
    node: ast.If,
    frame: Frame,
    condition: Value,
    sides: Sequence[Side],
) -> bool:
    """Write the branch as a logical ``and`` or ``or`` if it is one.

    TorchScript writes ``a and b`` as ``b if a else False``. Returns whether it was so.
    """
    names = left_by(node, frame)
    if len(names) != 1 or any(side.changed or side.contents for side in sides):
        return False
    (name,) = names
    then, otherwise = (side.names.get(name) for side in sides)
    cheap = all(_can_be_eager(side.writer) for side in sides)
    if then is True and otherwise is False:
        frame.names[name] = condition
    elif cheap and otherwise is False and _is_test(then):
        machine.run(node.body, frame)
        frame.names[name] = _combined_test(machine, "and_", condition, frame, name)
    elif cheap and then is True and _is_test(otherwise):
        machine.run(node.orelse, frame)
        frame.names[name] = _combined_test(machine, "or_", condition, frame, name)
    else:
        return False
    return True


def _can_be_eager(writer: NodeWriter) -> bool:
    """Return whether a side computes little, and cannot fail where it is not taken."""
    nodes = writer.nodes.nodes
    return len(nodes) <= _CHEAP and not any(_may_fail(writer, node) for node in nodes)


def _may_fail(writer: NodeWriter, node: RawNode) -> bool:
    """Return whether a node reads at an index that may not exist (``x[i]``)."""
    if not node.op_type.startswith("Gather"):
        return False
    data, index = (writer.growing.type(name or "") for name in node.inputs[:2])
    if not isinstance(data, Type) or not isinstance(index, Type) or data.shape is None:
        return True
    extent = data.shape[node.attrs.get("axis", 0)]
    if node.op_type != "Gather" or index.known is None or not isinstance(extent, int):
        return True
    return bool(np.any((index.known >= extent) | (index.known < -extent)))


def _combined_test(
    machine: Expressions, function: str, condition: Value, frame: Frame, name: str
) -> PyValue:
    tests = [condition, frame.names[name]]
    return machine.number(f"_operator.{function}", tests, frame.origin(name))


def _is_test(obj: PyValue) -> bool:
    return isinstance(obj, Value) and obj.is_number and obj.dtype == BOOL


def side_of(
    machine: Expressions,
    body: Sequence[ast.stmt],
    frame: Frame,
    writer: NodeWriter,
    to_end: bool = False,
) -> Side | None:
    """Interpret a block and return its result; None if it raises an error.

    The state of the interpreter is restored afterwards.

    Raises:
        UnsupportedModel: it sets an attribute, or returns without ``to_end``.
    """
    names = dict(frame.names)
    before = [(x, x.copy()) for x in _containers(machine, names)]
    attributes = dict(machine.modules.assigned)
    outer, start = machine.writer, len(machine.journal)
    machine.writer = writer
    side = Side(writer, names)
    try:
        inner = Frame(frame.function, frame.module, names, Rest() if to_end else None)
        result = machine.run(body, inner)
    except Raised:
        return None
    finally:
        machine.writer = outer
        side.changed = _undone(machine, start)
    if result is not None and not to_end:
        raise UnsupportedModel("a branch contains a return that is not supported here")
    side.result = None if result is None else result.value
    for container, copy in before:
        if container != copy:
            side.contents.append((container, container.copy()))
            fill(container, copy)
    if machine.modules.assigned != attributes:
        raise UnsupportedModel("an attribute is set in a branch")
    return side


def _containers(machine: Expressions, names: Mapping[str, PyValue]) -> list[Container]:
    """Return all lists and dicts reachable from names and module attributes."""
    containers: dict[int, Container] = {}
    stack = [*names.values(), *machine.modules.containers.values()]
    while stack:
        obj = stack.pop()
        if isinstance(obj, list | tuple | dict) and id(obj) not in containers:
            machine.budget.step(len(obj))
            if not isinstance(obj, tuple):
                containers[id(obj)] = obj
            stack += obj.values() if isinstance(obj, dict) else obj
    return list(containers.values())


def _undone(machine: Expressions, start: int) -> dict[TensorRef, Value]:
    """Undo changes in place since ``start``; return the changed tensors and values."""
    changed = {tensor: tensor.current for tensor, _ in machine.journal[start:]}
    for tensor, before in reversed(machine.journal[start:]):
        tensor.current = before
    del machine.journal[start:]
    return changed
