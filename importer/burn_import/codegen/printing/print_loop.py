"""Emission of loops: ``for i in range(n):`` and ``while going:``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn import Tensor
from burn_import.codegen.printing.name_candidates import noun_of
from burn_import.tracing.expression import ATOM, Expression, merge, negate
from burn_import.tracing.identifiers import singular, snake
from burn_import.tracing.statements import block_reads, mentions, outer_symbols
from burn_import.tracing.trace import Members, Repetition, Symbol

if TYPE_CHECKING:
    from burn_import.codegen.printing.line_writer import LineWriter

EMPTY = Expression("[]")


def write_loop(writer: LineWriter, loop: Repetition, indent: int) -> None:
    """Write a loop, its initial assignments and its results."""
    outside = outer_symbols(loop)
    trips = None if loop.trips is None else writer.render.host(loop.trips)
    names = _assign_initial_values(writer, loop, indent)
    lists = _lists(writer, loop, indent)
    if trips is not None:
        writer.spend(trips)
    counted = mentions(loop.body, loop.counter)
    counter = writer.extents.locals[loop.counter] if counted else "_"
    sources = [_source(writer, source) for _, source in loop.items]
    live = dict(writer.live)
    if sources or loop.members or loop.numbers:
        _items(writer, loop, indent, sources)
    else:
        _head(writer, loop, indent, trips, counter, names)
    _write_body(writer, loop, indent + 1, names, lists)
    for expression in sources:
        writer.spend(expression)
    if trips is None and counted:
        writer.line(f"{counter} = {counter} + 1", indent + 1)
    for members in loop.members:
        del writer.render.members[(*members.path, str(members.start))]
    for symbol in outside:
        writer.remaining[symbol] -= 1
    writer.live = {
        name: symbol
        for name, symbol in live.items()
        if symbol is None or writer.remaining.get(symbol, 0) > 0
    }
    for target, name in zip(loop.targets, [*names, *lists], strict=True):
        if writer.remaining.get(target) or target in writer.extents.reads:
            writer.claim(target, name)
            writer.read_extents(target, indent)


def _assign_initial_values(
    writer: LineWriter, loop: Repetition, indent: int
) -> list[str]:
    """Assign the initial carried values; return their names."""
    names = []
    starts = [writer.result(value) for value in loop.initial]
    for start in starts:
        writer.spend(start)
    places = zip(loop.state, loop.targets, starts, strict=False)
    for number, (state, target, start) in enumerate(places):
        later = {
            name for other in starts[number + 1 :] for name in _names(writer, other)
        }
        name = _name(writer, loop, state, target, start, later)
        if name != start.text:
            writer.line(f"{writer.declared(name, state, start)} = {start.text}", indent)
        writer.claim(state, name)
        names.append(name)
    return names


def _name(
    writer: LineWriter,
    loop: Repetition,
    state: Symbol,
    target: Symbol,
    start: Expression,
    later: set[str],
) -> str:
    """Return the name of a carried value: its initial value's, if that is free."""
    text = start.text
    if text.isidentifier() and text not in writer.live and text not in later:
        return text
    going = loop.check == "before" and state is loop.state[0]
    noun = writer.outputs.get(target) or noun_of(writer, state, loop)
    if not loop.members:
        noun = noun_of(writer, target, loop) or noun
    plain = writer.stream() if loop.members else "state"
    name = writer.free(noun or ("going" if going else plain), state)
    while name in later:  # a later initial assignment still reads it
        writer.live.setdefault(name, None)
        name = writer.free(name, state)
    return name


def _names(writer: LineWriter, expression: Expression) -> list[str]:
    return [writer.render.names[s] for s in expression.symbols]


def _lists(writer: LineWriter, loop: Repetition, indent: int) -> list[str]:
    """Initialize the collected lists; return their names."""
    names = []
    for target in loop.targets[len(loop.state) :]:
        noun = noun_of(writer, target, loop) or "rows"
        name = writer.free(noun, target)
        writer.line(f"{writer.declared(name, target, EMPTY)} = []", indent)
        writer.claim(target, name)
        names.append(name)
        rounds = {members.stop - members.start for members in loop.members[:1]}
        writer.lengths[name] = rounds.pop() if rounds else 0
    return names


def _source(writer: LineWriter, source: Any) -> Expression:
    """Return the iterable of a loop: a list, or a tuple of values."""
    if isinstance(source, Tensor):
        return writer.result(source)
    values = [writer.result(value) for value in source]
    texts = [value.text for value in values]
    text = _reversed_list(writer, texts) or _tuple(texts)
    return Expression(text, ATOM, merge(values))


def _reversed_list(writer: LineWriter, texts: list[str]) -> str:
    """Return ``states[::-1]`` for all items of a collected list from the last on."""
    name = texts[0].partition("[")[0]
    count = writer.lengths.get(name, 0)
    items = [f"{name}[{number}]" for number in reversed(range(count))]
    return f"{name}[::-1]" if count > 1 and texts == items else ""


def _tuple(texts: list[str]) -> str:
    """Return a tuple of values: ``(a, b) * 13`` for a periodic one."""
    count = len(texts)
    size = next(n for n in range(1, count + 1) if texts[:n] * (count // n) == texts)
    if count <= 3 or size == count:
        return f"({', '.join(texts)})"
    shown = ", ".join(texts[:size]) + "," * (size == 1)
    return f"({shown}) * {count // size}"


def _items(
    writer: LineWriter, loop: Repetition, indent: int, sources_read: list[Expression]
) -> None:
    """Write ``for layer, x in zip(self.layers, xs, strict=True):``."""
    names, sources = [], []
    if isinstance(loop.trips, int) and mentions(loop.body, loop.counter):
        names.append(writer.extents.locals[loop.counter])
        sources.append(f"range({loop.trips})")
    for members in loop.members:
        name, text = _member(writer, members)
        names.append(name)
        sources.append(text)
    for (item, _), source in zip(loop.items, sources_read, strict=True):
        used = writer.remaining.get(item) or item in writer.extents.reads
        named = source.text if source.text.isidentifier() else ""
        word = noun_of(writer, item, loop)
        word = word or singular(named or ("y" if loop.members else "item"))
        names.append(writer.free(word, item) if used else "_")
        if used:
            writer.claim(item, names[-1])
    sources += [source.text for source in sources_read]
    for row in loop.numbers:
        names.append(writer.extents.locals[row.dim])
        sources.append(_tuple([str(value) for value in row.values]))
    together = ", ".join(sources)
    if len(sources) > 1:
        together = f"zip({together}, strict=True)"
    writer.line(f"for {', '.join(names)} in {together}:", indent)
    for item, _ in loop.items:
        writer.read_extents(item, indent + 1)


def _member(writer: LineWriter, members: Members) -> tuple[str, str]:
    """Return the loop variable for a list's members, and the source of the list."""
    word = members.path[-1]
    kind = f"a member of {'.'.join(members.path)}"
    noun = "layer" if word.isdigit() or len(word) == 1 else singular(word)
    name = writer.free(snake(noun), Symbol(), kind)
    writer.kinds[name] = kind
    writer.live[name] = None
    text = writer.render.module(members.path)
    if not members.whole:
        stop = "" if members.stop == members.count else members.stop
        text += f"[{members.start or ''}:{stop}]"
    writer.render.members[(*members.path, str(members.start))] = name
    return name, text


def _head(
    writer: LineWriter,
    loop: Repetition,
    indent: int,
    trips: Expression | None,
    counter: str,
    names: list[str],
) -> None:
    if trips is not None:
        writer.line(f"for {counter} in range({trips.text}):", indent)
        if loop.check == "before":
            writer.line(f"if not {names[0]}:", indent + 1)
            writer.line("break", indent + 2)
        return
    if counter != "_":
        writer.line(f"{counter} = 0", indent)
    going = names[0] if loop.check == "before" else "True"
    writer.line(f"while {going}:", indent)


def _write_body(
    writer: LineWriter,
    loop: Repetition,
    indent: int,
    names: list[str],
    lists: list[str],
) -> None:
    """Write the lines of the loop body."""
    start = len(writer.lines)
    for state in loop.state:
        writer.read_extents(state, indent)
    results = loop.body.results
    writer.preferred.update(
        {value.data: name for value, name in zip(results, names, strict=False)}
    )
    writer.block(loop.body, indent)
    for name, value in zip(lists, results[len(names) :], strict=False):
        item = writer.result(value)
        writer.spend(item)
        writer.line(f"{name}.append({item.text})", indent)
    following = [writer.result(value) for value in results[: len(names)]]
    going = writer.result(results[-1]) if loop.check == "after" else None
    for expression in (*following, going):
        if expression is not None:
            writer.spend(expression)
    moving = {n for n, value in zip(names, following, strict=True) if n != value.text}
    if going is not None and moving.intersection(_names(writer, going)):
        text = writer.free("going", results[-1].data)
        writer.line(f"{text} = {going.text}", indent)
        going = Expression(text)
    ordered = going is not None and results[-1].data in writer.render.python
    _assign_next_values(
        writer, names, following, _unaliased_lists(writer, loop, names), indent
    )
    if going is not None:
        writer.line(f"if {negate(going, ordered).text}:", indent)
        writer.line("break", indent + 1)
    if len(writer.lines) == start:
        writer.line("pass", indent)


def _unaliased_lists(
    writer: LineWriter, loop: Repetition, names: list[str]
) -> set[str]:
    """Return unaliased lists: initially empty and read once per iteration."""
    reads = list(block_reads(loop.body))
    return {
        name
        for name, state, first in zip(names, loop.state, loop.initial, strict=True)
        if writer.result(first).text == "[]" and reads.count(state) == 1
    }


def _assign_next_values(
    writer: LineWriter,
    names: list[str],
    following: list[Expression],
    own: set[str],
    indent: int,
) -> None:
    """Assign the next carried values, simultaneously if they depend on each other."""
    moved = [
        (name, value)
        for name, value in zip(names, following, strict=True)
        if name != value.text
    ]
    assigned: set[str] = set()
    entangled = False
    for name, value in moved:
        entangled = entangled or bool(assigned & set(_names(writer, value)))
        assigned.add(name)
    if entangled:
        left = ", ".join(name for name, _ in moved)
        right = ", ".join(value.text for _, value in moved)
        writer.line(f"{left} = {right}", indent)
        return
    for name, value in moved:
        item = value.text.removeprefix(f"{name} + [").removesuffix("]")
        whole = value.text == f"{name} + [{item}]" and "] + [" not in item
        if name in own and whole:
            writer.line(f"{name}.append({item})", indent)
        else:
            writer.line(f"{name} = {value.text}", indent)
