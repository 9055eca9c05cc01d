"""A place in untrusted bytes, from which numbers, texts and blobs are taken."""

from typing import NamedTuple, TypeAlias

from burn.record.errors import RecordError, shown

#: Containers in containers; modules of modules stay far below.
MOST_NESTED = 100
#: Values in all, so that a small file cannot fill the memory with objects.
MOST_ITEMS = 500_000
#: Bytes of text in all, which take up to four times as much as objects.
MOST_TEXT = 16 * 2**20


class Blob(NamedTuple):
    """Bytes that stay where they are: from ``begin`` to ``end`` of the data."""

    begin: int
    end: int


Plain: TypeAlias = bool | int | float | str | None
Value: TypeAlias = "Plain | Blob | list[Value] | dict[str, Value]"


class Cursor:
    """What is left of ``data``, which errors call ``what``."""

    def __init__(self, data: memoryview, label: str, at: int = 0) -> None:
        self.data, self.what, self.at = data, label, at
        self.items = self.depth = self.texts = 0

    def take(self, size: int) -> memoryview:
        """The next bytes.

        Raises:
            RecordError: there are fewer.
        """
        start, self.at = self.at, self.at + size
        if self.at > len(self.data):
            left = len(self.data) - start
            raise self.problem(f"cut off: expected {size} bytes, got {left}", start)
        return self.data[start : self.at]

    def blob(self, size: int) -> Blob:
        """Where the next bytes are."""
        start = self.at
        self.take(size)
        return Blob(start, self.at)

    def text(self, size: int) -> str:
        """The next bytes as UTF-8."""
        start = self.at
        self.texts += size
        if self.texts > MOST_TEXT < len(self.data):
            raise self.problem(f"more than {MOST_TEXT} bytes of text")
        try:
            return str(self.take(size), "utf-8")
        except UnicodeDecodeError:
            raise self.problem("expected text in UTF-8", start) from None

    def number(self, size: int, *, big: bool = True, signed: bool = False) -> int:
        """The next bytes as an integer."""
        data = self.take(size)
        return int.from_bytes(data, "big" if big else "little", signed=signed)

    def enter(self, count: int, each: int = 1) -> int:
        """``count``, of a container that begins here and has as many items.

        Raises:
            RecordError: the file is too short for them, or there are too many.
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
        """The container that was entered last ends here."""
        self.depth -= 1

    def problem(self, text: str, at: int | None = None) -> RecordError:
        """An error that says where."""
        offset = self.at if at is None else at
        return RecordError(f"{self.what}: byte {offset}: {text}")

    def add(self, result: dict[str, Value], key: Value, value: Value) -> None:
        """Put an item into a map whose keys are texts, each there once."""
        if not isinstance(key, str):
            raise self.problem(f"expected a text as key, got {shown(key)}")
        if key in result:
            raise self.problem(f"duplicate key {shown(key)}")
        result[key] = value
