"""A restricted unpickler for protocols 0 to 5.

It differs from ``pickle.Unpickler`` where that runs code. A name becomes a token, an
object an inert instance, and only the functions in ``pickle_globals.py`` are called.
Other instructions that reach code are refused: INST, OBJ, the extension registry,
textual persistent ids and out-of-band buffers. The instructions are those of
https://github.com/python/cpython/blob/main/Lib/pickletools.py.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeVar

from burn_import.frontends.checkpoints.numpy_globals import Buildable
from burn_import.frontends.checkpoints.pickle_globals import Context, call, make
from burn_import.frontends.checkpoints.pickle_stream import Stream, decode
from burn_import.frontends.checkpoints.pickle_values import (
    Global,
    Instance,
    Value,
    checked_key,
    named,
)
from burn_ir import ModelError, UnreadableFile, UnsupportedModel

_U1, _U2, _U4 = (struct.Struct(f"<{code}") for code in "BHI")
_U8, _I4, _F8 = struct.Struct("<Q"), struct.Struct("<i"), struct.Struct(">d")


class Machine(Stream):
    """The stack, marks and memo of one pickle that begins at byte ``at``.

    ``persistent`` maps a persistent id to its value.
    """

    def __init__(
        self,
        data: memoryview,
        context: Context,
        persistent: Callable[[Value], Value] | None = None,
        at: int = 0,
    ) -> None:
        super().__init__(data, at, context.limits)
        self.context = context
        self.persistent = persistent
        self.stack: list[Value] = []
        self.marks: list[list[Value]] = []
        self.memo: dict[int, Value] = {}
        self.globals: dict[tuple[str, str], Global] = {}

    def run(self) -> Value:
        """Return the value of the pickle; ``at`` is then the byte after it.

        Raises:
            UnreadableFile: the bytes are no pickle, or a truncated one.
            UnsupportedModel: it calls a function that is refused, or exceeds the
                limits.
            InvalidModel: the fields of a tensor contradict each other.
        """
        data = self.data
        try:
            for done in range(self.context.operations_left()):
                code = data[self.at]
                self.at += 1
                if code == _STOP:
                    self.context.spend(done)
                    return self.stack.pop()
                OPCODES[code](self)
        except (IndexError, KeyError, struct.error, ValueError, OverflowError) as error:
            if isinstance(error, ModelError):
                raise
            raise UnreadableFile(
                f"expected a pickle, damaged or cut off at byte {self.at}"
            ) from None
        raise UnsupportedModel("a pickle that exceeds the limit on instructions")

    def top(self, kind: type[T]) -> T:
        """Return the value on top of the stack, which must be a ``kind``."""
        value = self.stack[-1]
        if not isinstance(value, kind):
            raise UnreadableFile(f"expected a {kind.__name__}, got {named(value)}")
        return value

    def pop_to_mark(self) -> list[Value]:
        """Pop the values above the last mark, and the mark."""
        values = self.stack
        self.stack = self.marks.pop()
        return values

    def token(self, module: str, name: str) -> Global:
        """Return the token of a name; one token for all uses of the name."""
        key = (module, name)
        if key not in self.globals:
            self.globals[key] = Global(module, name)
        return self.globals[key]

    def insert(self, values: list[Value]) -> None:
        """Add alternating keys and values to the dict on top of the stack."""
        target = self.stack[-1]
        if isinstance(target, Instance):
            target = target.entries
        if not isinstance(target, dict) or len(values) % 2:
            raise UnreadableFile(f"expected a dict and pairs, got {named(target)}")
        pairs = iter(values)
        for key in pairs:
            target[key if type(key) is str else checked_key(key)] = next(pairs)

    def extend(self, values: list[Value]) -> None:
        """Add elements to the list on top of the stack."""
        target = self.stack[-1]
        if isinstance(target, Instance):
            target = target.elements
        if not isinstance(target, list):
            raise UnreadableFile(f"expected a list, got {named(target)}")
        target.extend(values)

    def build(self, state: Value) -> None:
        """Record the state of the object on top of the stack; nothing is run."""
        target = self.stack[-1]
        if isinstance(target, Instance):
            target.state = state
        elif isinstance(target, Buildable):
            target.build(state)
        elif not isinstance(target, dict):  # an OrderedDict with attributes
            raise UnsupportedModel(
                f"the pickle sets the state of {named(target)}; only objects have one"
            )


T = TypeVar("T")
Handler = Callable[[Machine], object]
_STOP = ord(".")


def _refuse(noun: str) -> Handler:
    def refuse(m: Machine) -> None:
        raise UnsupportedModel(
            f"the pickle uses {noun}, which is refused: files of tensors do not need it"
        )

    return refuse


def _unknown(m: Machine) -> None:
    raise UnreadableFile(
        f"expected a pickle, got byte {m.data[m.at - 1]:#04x} at {m.at - 1}, which is "
        "no instruction"
    )


def _protocol(m: Machine) -> None:
    version = m.number(_U1)
    if version > 5:
        raise UnsupportedModel(f"a pickle of protocol {version}, expected 5 at most")


def _frame(m: Machine) -> None:
    if m.number(_U8) > len(m.data) - m.at:
        raise IndexError


def _mark(m: Machine) -> None:
    if len(m.marks) >= m.limits.marks:
        raise UnsupportedModel(f"containers nested deeper than {m.limits.marks}")
    m.marks.append(m.stack)
    m.stack = []


def _pop(m: Machine) -> None:
    if m.stack:
        m.stack.pop()
    else:
        m.pop_to_mark()


def _global(m: Machine) -> None:
    module, name = decode(m.line()), decode(m.line())
    m.stack.append(m.token(module, name))


def _stack_global(m: Machine) -> None:
    name = m.stack.pop()
    module = m.top(str)
    if not isinstance(name, str):
        raise UnreadableFile(f"expected a name, got {named(name)}")
    m.stack[-1] = m.token(module, name)


def _reduce(m: Machine) -> None:
    args = m.stack.pop()
    m.stack[-1] = call(m.context, m.stack[-1], args)


def _new(m: Machine) -> None:
    args = m.stack.pop()
    m.stack[-1] = make(m.top(Global), args)


def _new_with_keywords(m: Machine) -> None:
    m.stack.pop()  # an inert instance ignores them
    _new(m)


def _persistent(m: Machine) -> None:
    if m.persistent is None:
        raise UnsupportedModel(
            "the pickle refers to storages outside of it; expected the archive that "
            "torch.save writes around it"
        )
    m.stack[-1] = m.persistent(m.stack[-1])


def _set_item(m: Machine) -> None:
    value = m.stack.pop()
    m.insert([m.stack.pop(), value])


def _dict(m: Machine) -> None:
    values = m.pop_to_mark()
    m.stack.append({})
    m.insert(values)


def _integer_line(m: Machine) -> None:
    start = m.at
    line = m.line()
    if line in (b"00", b"01"):  # protocol 0 writes booleans as I00 and I01
        m.stack.append(line == b"01")
        return
    m.at = start
    m.stack.append(m.digits())


def _unicode_line(m: Machine) -> None:
    m.stack.append(str(m.line(), "raw-unicode-escape"))


def _put(m: Machine, key: int) -> None:
    m.memo[key] = m.stack[-1]


def _byte_put(m: Machine) -> None:
    m.memo[m.data[m.at]] = m.stack[-1]
    m.at += 1


def _byte_get(m: Machine) -> None:
    m.stack.append(m.memo[m.data[m.at]])
    m.at += 1


def _byte(m: Machine) -> None:
    m.stack.append(m.data[m.at])
    m.at += 1


def _list(m: Machine) -> None:
    values = m.pop_to_mark()  # before ``m.stack`` is read: this replaces it
    m.stack.append(values)


def _tuple_to_mark(m: Machine) -> None:
    values = m.pop_to_mark()
    m.stack.append(tuple(values))


def _tuple(size: int) -> Handler:
    def gather(m: Machine) -> None:
        if len(m.stack) < size:
            raise IndexError
        m.stack[-size:] = [tuple(m.stack[-size:])]

    return gather


def _push(make_value: Callable[[Machine], Value]) -> Handler:
    def push(m: Machine) -> None:
        m.stack.append(make_value(m))

    return push


_SET = Global("builtins", "set")


def _items(m: Machine) -> None:
    m.extend(m.pop_to_mark())


def _frozen_set(m: Machine) -> None:
    values = m.pop_to_mark()
    m.stack.append(Instance(Global("builtins", "frozenset")))
    m.extend(values)


_NAMED: dict[bytes, Handler] = {
    b"\x80": _protocol,
    b"\x95": _frame,
    b"(": _mark,
    b"0": _pop,
    b"1": Machine.pop_to_mark,
    b"2": lambda m: m.stack.append(m.stack[-1]),
    # Names, calls and objects
    b"c": _global,
    b"\x93": _stack_global,
    b"R": _reduce,
    b"\x81": _new,
    b"\x92": _new_with_keywords,
    b"b": lambda m: m.build(m.stack.pop()),
    b"Q": _persistent,
    b"P": _refuse("PERSID, a persistent id in text"),
    b"i": _refuse("INST, which calls a class"),
    b"o": _refuse("OBJ, which calls a class"),
    b"\x82": _refuse("EXT1, the extension registry"),
    b"\x83": _refuse("EXT2, the extension registry"),
    b"\x84": _refuse("EXT4, the extension registry"),
    b"\x97": _refuse("NEXT_BUFFER, a buffer out of band"),
    b"\x98": lambda m: m.stack[-1],
    # Containers
    b"}": lambda m: m.stack.append({}),
    b"]": lambda m: m.stack.append([]),
    b")": lambda m: m.stack.append(()),
    b"\x8f": lambda m: m.stack.append(Instance(_SET)),
    b"u": lambda m: m.insert(m.pop_to_mark()),
    b"s": _set_item,
    b"d": _dict,
    b"e": _items,
    b"a": lambda m: m.extend([m.stack.pop()]),
    b"l": _list,
    b"t": _tuple_to_mark,
    b"\x85": _tuple(1),
    b"\x86": _tuple(2),
    b"\x87": _tuple(3),
    b"\x90": _items,
    b"\x91": _frozen_set,
    # Memo
    b"q": _byte_put,
    b"r": lambda m: _put(m, m.number(_U4)),
    b"p": lambda m: _put(m, m.digits()),
    b"\x94": lambda m: _put(m, len(m.memo)),
    b"h": _byte_get,
    b"j": lambda m: m.stack.append(m.memo[m.number(_U4)]),
    b"g": lambda m: m.stack.append(m.memo[m.digits()]),
    # Constants and numbers
    b"N": lambda m: m.stack.append(None),
    b"\x88": lambda m: m.stack.append(True),
    b"\x89": lambda m: m.stack.append(False),
    b"K": _byte,
    b"M": _push(lambda m: m.number(_U2)),
    b"J": _push(lambda m: m.number(_I4)),
    b"\x8a": _push(lambda m: m.integer(_U1)),
    b"\x8b": _push(lambda m: m.integer(_I4)),
    b"I": _integer_line,
    b"L": _push(Machine.digits),
    b"G": _push(lambda m: m.number(_F8)),
    b"F": _push(lambda m: float(m.line())),
    # Text and bytes
    b"X": _push(lambda m: m.text(_U4)),
    b"\x8c": _push(lambda m: m.text(_U1)),
    b"\x8d": _push(lambda m: m.text(_U8)),
    b"V": _unicode_line,
    b"U": _push(lambda m: m.text_or_bytes(_U1)),
    b"T": _push(lambda m: m.text_or_bytes(_I4)),
    b"S": _push(Machine.quoted),
    b"B": _push(lambda m: m.raw(_U4)),
    b"C": _push(lambda m: m.raw(_U1)),
    b"\x8e": _push(lambda m: m.raw(_U8)),
    b"\x96": _push(lambda m: m.raw(_U8)),
}
#: The handler of each opcode.
OPCODES: list[Handler] = [_NAMED.get(bytes([code]), _unknown) for code in range(256)]
