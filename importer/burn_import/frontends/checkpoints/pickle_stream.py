"""Byte stream of a pickle, and decoding of instruction arguments."""

import re
import struct

from burn.record.errors import shown
from burn_import.frontends.checkpoints.limits import Limits
from burn_ir import UnreadableFile, UnsupportedModel

_ESCAPES = re.compile(rb"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|.)", re.DOTALL)
_CONTROLS = dict(zip(b"abfnrtv", b"\a\b\f\n\r\t\v", strict=True))
#: Longer byte strings are views of the file, not copies.
_COPIED = 4096


class Stream:
    """A position in the bytes of a pickle.

    Reading past the end raises ``IndexError`` or ``struct.error``, which the unpickler
    reports.
    """

    def __init__(self, data: memoryview, at: int, limits: Limits) -> None:
        self.data = data
        self.at = at
        self.limits = limits

    def number(self, layout: struct.Struct) -> int:
        """Read the next number in a ``struct`` layout."""
        value: int = layout.unpack_from(self.data, self.at)[0]
        self.at += layout.size
        return value

    def take(self, size: int) -> memoryview:
        """Read the next ``size`` bytes without a copy."""
        end = self.at + size
        if end > len(self.data):
            raise IndexError
        part = self.data[self.at : end]
        self.at = end
        return part

    def counted(self, layout: struct.Struct) -> memoryview:
        """Read bytes that are preceded by their count."""
        size = self.number(layout)
        if size < 0:
            raise UnreadableFile(f"expected a length of 0 or more, got {size}")
        return self.take(size)

    def raw(self, layout: struct.Struct) -> bytes | memoryview:
        """Read counted bytes, as ``bytes`` or, if long, as a view of the file."""
        part = self.counted(layout)
        return part if len(part) > _COPIED else bytes(part)

    def text(self, layout: struct.Struct) -> str:
        """Read counted UTF-8 text."""
        return decode(self.counted(layout))

    def text_or_bytes(self, layout: struct.Struct) -> str | bytes:
        """Read a counted Python 2 string, which may be text or bytes."""
        part = bytes(self.counted(layout))
        try:
            return part.decode()
        except UnicodeDecodeError:
            return part

    def line(self) -> bytes:
        """Read the text up to the next end of line."""
        window = bytes(self.data[self.at : self.at + self.limits.line + 1])
        end = window.find(b"\n")
        if end < 0:
            if len(window) > self.limits.line:
                raise UnreadableFile(f"expected a line of {self.limits.line} bytes")
            raise IndexError
        self.at += end + 1
        return window[:end]

    def digits(self) -> int:
        """Read a line with a number of at most ``limits.integer`` digits."""
        line = self.line().removesuffix(b"L")
        if len(line) > self.limits.integer:
            raise UnsupportedModel(f"an integer of {len(line)} digits")
        return int(line)

    def integer(self, layout: struct.Struct) -> int:
        """Read a little-endian integer that is preceded by its size."""
        size = self.number(layout)
        if not 0 <= size <= self.limits.integer:
            raise UnsupportedModel(f"an integer of {size} bytes")
        return int.from_bytes(self.take(size), "little", signed=True)

    def quoted(self) -> str | bytes:
        """Read a line with a string literal, as Python 2 wrote it."""
        line = self.line().strip()
        if len(line) < 2 or line[0] != line[-1] or line[:1] not in (b"'", b'"'):
            raise UnreadableFile(f"expected a string in quotes, got {shown(line)}")
        content = _ESCAPES.sub(_unescape, line[1:-1])
        try:
            return content.decode()
        except UnicodeDecodeError:
            return content


def _unescape(match: re.Match[bytes]) -> bytes:
    escape = match[1]
    if escape[:1] == b"x" and len(escape) == 3:
        return bytes([int(escape[1:], 16)])
    if escape[:1].isdigit() and escape[0] < ord("8"):
        return bytes([int(escape, 8) & 0xFF])
    if escape[0] in _CONTROLS:
        return bytes([_CONTROLS[escape[0]]])
    return escape if escape in (b"\\", b"'", b'"') else b"\\" + escape


def decode(part: memoryview | bytes) -> str:
    """Return UTF-8 text, with lone surrogates as pickles allow.

    Raises:
        UnreadableFile: the bytes are not UTF-8.
    """
    try:
        return str(part, "utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"expected text in UTF-8: {error.reason}") from None
