"""A cursor in untrusted bytes, with checked reads of numbers, texts and blobs."""

from typing import NamedTuple, TypeAlias

from burn.record.errors import RecordError, shown

#: The maximum nesting depth; modules stay far below.
MOST_NESTED = 100
#: The maximum number of values, so that a small file cannot exhaust the memory.
MOST_ITEMS = 500_000
#: Bytes of text in all, which take up to four times as much as objects.
MOST_TEXT = 16 * 2**20


class Blob(NamedTuple):
    """A reference to bytes: from ``begin`` to ``end`` of the data."""

    begin: int
    end: int


Plain: TypeAlias = bool | int | float | str | None
Value: TypeAlias = "Plain | Blob | list[Value] | dict[str, Value]"


class Cursor:
    """The unread part of ``data``, whose name in errors is ``label``."""

    def __init__(self, data: memoryview, label: str, at: int = 0) -> None:
        self.data, self.label, self.at = data, label, at
        self.items = self.depth = self.texts = 0

    def take(self, size: int) -> memoryview:
        """Return the next bytes.

        Raises:
            RecordError: there are fewer.
        """
        start, self.at = self.at, self.at + size
        if self.at > len(self.data):
            left = len(self.data) - start
            raise self.problem(f"cut off: expected {size} bytes, got {left}", start)
        return self.data[start : self.at]

    def blob(self, size: int) -> Blob:
        """Return a reference to the next bytes."""
        start = self.at
        self.take(size)
        return Blob(start, self.at)

    def text(self, size: int) -> str:
        """Return the next bytes as UTF-8 text."""
        start = self.at
        self.texts += size
        if self.texts > MOST_TEXT < len(self.data):
            raise self.problem(f"more than {MOST_TEXT} bytes of text")
        try:
            return str(self.take(size), "utf-8")
        except UnicodeDecodeError:
            raise self.problem("expected text in UTF-8", start) from None

    def number(self, size: int, *, big: bool = True, signed: bool = False) -> int:
        """Return the next bytes as an integer."""
        data = self.take(size)
        return int.from_bytes(data, "big" if big else "little", signed=signed)

    def enter(self, count: int, each: int = 1) -> int:
        """Enter a container of ``count`` items, and return ``count``.

        Raises:
            RecordError: the file is too short for the items, or there are too many.
        """
        self.items += count * each
        self.depth += 1
        if count * each > len(self.data) - self.at:
            raise self.problem(f"cut off: expected {count} items")
        if self.items > MOST_ITEMS:
            raise self.problem(f"more than {MOST_ITEMS} values")
        if self.depth > MOST_NESTED:
            raise self.problem(f"nested deeper than {MOST_NESTED}")
        return count

    def leave(self) -> None:
        """Leave the container that was entered last."""
        self.depth -= 1

    def problem(self, text: str, at: int | None = None) -> RecordError:
        """Return an error with the position."""
        offset = self.at if at is None else at
        return RecordError(f"{self.label}: byte {offset}: {text}")

    def add(self, result: dict[str, Value], key: Value, value: Value) -> None:
        """Insert an item into a map with unique text keys."""
        if not isinstance(key, str):
            raise self.problem(f"expected a text as key, got {shown(key)}")
        if key in result:
            raise self.problem(f"duplicate key {shown(key)}")
        result[key] = value
