"""The outcome of loading stored tensors into a module, for every key."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

Status: TypeAlias = Literal[
    "applied", "skipped", "missing", "unexpected", "mis-shaped", "wrong dtype", "clash"
]
#: The outcomes that a strict load rejects.
PROBLEMS: tuple[Status, ...] = get_args(Status)[2:]


class WeightsError(ValueError):
    """Stored tensors do not fit a module; the message lists every key that differs.

    ``report`` has the same information as data if the error comes from a load.
    """

    report: "Report | None" = None


@dataclass(frozen=True)
class Row:
    """The outcome for one key of a module, or for a file key that no module has.

    ``detail`` is the dtype and shape, or the expected and the actual one.
    """

    status: Status
    key: str
    detail: str

    def __str__(self) -> str:
        key = plain(self.key)
        if self.status == "missing":
            return f"missing {key}: {self.detail}"
        if self.status == "unexpected":
            return f"unexpected {key}"
        return f"{key}: {self.detail}"


@dataclass(frozen=True)
class Report:
    """The outcome of a load for every key; ``print(report)`` shows it as a table.

    ``applied`` keys were set; ``skipped`` ones were excluded by a filter or are not
    module state; ``missing`` ones are in the module and not in the file; ``unexpected``
    ones in the file and not in the module; ``mis_shaped`` and ``wrong_dtype`` ones do
    not fit. A ``clash`` is two values for one box: of two file keys with the same new
    name, or of the two keys of a tied box.
    """

    rows: tuple[Row, ...]

    def keys(self, status: Status) -> tuple[str, ...]:
        """Return the keys with one outcome."""
        return tuple(row.key for row in self.rows if row.status == status)

    @property
    def applied(self) -> tuple[str, ...]:
        return self.keys("applied")

    @property
    def skipped(self) -> tuple[str, ...]:
        return self.keys("skipped")

    @property
    def missing(self) -> tuple[str, ...]:
        return self.keys("missing")

    @property
    def unexpected(self) -> tuple[str, ...]:
        return self.keys("unexpected")

    @property
    def mis_shaped(self) -> tuple[str, ...]:
        return self.keys("mis-shaped")

    @property
    def wrong_dtype(self) -> tuple[str, ...]:
        return self.keys("wrong dtype")

    @property
    def clashes(self) -> tuple[str, ...]:
        return self.keys("clash")

    @property
    def problems(self) -> tuple[Row, ...]:
        """The rows that a strict load rejects, by kind and in order."""
        return tuple(
            row for kind in PROBLEMS for row in self.rows if row.status == kind
        )

    def check(self, where: str = "") -> None:
        """Check that there are no problems.

        Raises:
            WeightsError: there are problems; the message lists all.
        """
        if self.problems:
            start = f"{where}: " if where else ""
            lines = "\n  ".join(map(str, self.problems))
            text = f"{start}the weights do not fit:\n  {lines}{self._hint()}"
            error = WeightsError(text)
            error.report = self
            raise error

    def _hint(self) -> str:
        """Return how to load a file that has all missing keys behind one prefix."""
        others, missing = frozenset(self.unexpected), self.missing
        for key in self.unexpected if missing else ():
            prefix = key.removesuffix(missing[0])
            if prefix != key and others.issuperset(prefix + each for each in missing):
                pattern = f"^{re.escape(prefix)}"
                return (
                    f"\nkeys of the file begin with {prefix!a}: "
                    f"Store.from_file(path).with_key_remapping({pattern!a}, '')"
                    ".allow_partial().load(module)"
                )
        return ""

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        rows = [
            (row.status, plain(row.key), row.detail)
            for kind in get_args(Status)
            for row in self.rows
            if row.status == kind
        ]
        width = max((len(key) for _, key, _ in rows), default=0)
        for status, key, detail in rows:
            yield f"{status:11}  {key:{width}}  {detail}".rstrip()
        counts = {kind: len(self.keys(kind)) for kind in get_args(Status)}
        yield ", ".join(f"{n} {kind}" for kind, n in counts.items() if n) or "no keys"


def plain(key: str) -> str:
    """Return the key, with characters escaped that a terminal interprets or hides."""
    return key if key.isascii() and key.isprintable() else ascii(key)
