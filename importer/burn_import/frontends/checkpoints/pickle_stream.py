"""The bytes of a pickle and the arguments of its instructions."""

from __future__ import annotations

import re
import struct

from burn.record.errors import shown
from burn_import.frontends.checkpoints.limits import Limits
from burn_ir import UnreadableFile, UnsupportedModel

_ESCAPES = re.compile(rb"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|.)", re.DOTALL)
_CONTROLS = dict(zip(b"abfnrtv", b"\a\b\f\n\r\t\v", strict=True))
#: Longer byte strings are kept as a part of the file, not copied.
_COPIED = 4096


class Stream:
    """A position in the bytes of a pickle.

    What is read past the end raises ``IndexError`` or ``struct.error``, which the
    machine reports.
    """

    def __init__(self, data: memoryview, at: int, limits: Limits) -> None:
        self.data = data
        self.at = at
        self.limits = limits

    def number(self, layout: struct.Struct) -> int:
        """The next number in a fixed layout."""
        value: int = layout.unpack_from(self.data, self.at)[0]
        self.at += layout.size
        return value

    def take(self, size: int) -> memoryview:
        """The next ``size`` bytes, which are not copied."""
        end = self.at + size
        if end > len(self.data):
            raise IndexError
        part = self.data[self.at : end]
        self.at = end
        return part

    def counted(self, layout: struct.Struct) -> memoryview:
        """Return bytes whose count is stored in front of them."""
        size = self.number(layout)
        if size < 0:
            raise UnreadableFile(f"expected a length of 0 or more, got {size}")
        return self.take(size)

    def raw(self, layout: struct.Struct) -> bytes | memoryview:
        """The same as bytes, or as a part of the file where they are many."""
        part = self.counted(layout)
        return part if len(part) > _COPIED else bytes(part)

    def text(self, layout: struct.Struct) -> str:
        """The same as text in UTF-8."""
        return decoded(self.counted(layout))

    def text_or_bytes(self, layout: struct.Struct) -> str | bytes:
        """The same for strings of Python 2, which may be either."""
        part = bytes(self.counted(layout))
        try:
            return part.decode()
        except UnicodeDecodeError:
            return part

    def line(self) -> bytes:
        """Return the text up to the next end of a line."""
        window = bytes(self.data[self.at : self.at + self.limits.line + 1])
        end = window.find(b"\n")
        if end < 0:
            if len(window) > self.limits.line:
                raise UnreadableFile(f"expected a line of {self.limits.line} bytes")
            raise IndexError
        self.at += end + 1
        return window[:end]

    def digits(self) -> int:
        """The number in a line, of at most ``limits.integer`` digits."""
        line = self.line().removesuffix(b"L")
        if len(line) > self.limits.integer:
            raise UnsupportedModel(f"an integer of {len(line)} digits")
        return int(line)

    def integer(self, layout: struct.Struct) -> int:
        """The number of any size in as many bytes as are counted."""
        size = self.number(layout)
        if not 0 <= size <= self.limits.integer:
            raise UnsupportedModel(f"an integer of {size} bytes")
        return int.from_bytes(self.take(size), "little", signed=True)

    def quoted(self) -> str | bytes:
        """The string in a line, as Python 2 printed it."""
        line = self.line().strip()
        if len(line) < 2 or line[0] != line[-1] or line[:1] not in (b"'", b'"'):
            raise UnreadableFile(f"expected a string in quotes, got {shown(line)}")
        content = _ESCAPES.sub(_unescaped, line[1:-1])
        try:
            return content.decode()
        except UnicodeDecodeError:
            return content


def _unescaped(match: re.Match[bytes]) -> bytes:
    escape = match[1]
    if escape[:1] == b"x" and len(escape) == 3:
        return bytes([int(escape[1:], 16)])
    if escape[:1].isdigit() and escape[0] < ord("8"):
        return bytes([int(escape, 8) & 0xFF])
    if escape[0] in _CONTROLS:
        return bytes([_CONTROLS[escape[0]]])
    return escape if escape in (b"\\", b"'", b'"') else b"\\" + escape


def decoded(part: memoryview | bytes) -> str:
    """The text in UTF-8; lone surrogates are kept, as pickles do.

    Raises:
        UnreadableFile: it is no UTF-8.
    """
    try:
        return str(part, "utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"expected text in UTF-8: {error.reason}") from None
