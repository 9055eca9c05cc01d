"""A file of tensors, and how its keys become those of a module."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

from burn.record import Precision, record_bytes
from burn.record.errors import RecordError, joined, shown
from burn.store.files import BytesOrigin, FileOrigin
from burn.store.fit import described, fit
from burn.store.layout import from_burn, to_burn
from burn.store.names import Rule, renamed, renumbered
from burn.store.report import Report, Row
from burn.store.tensors import Content, InMemory, StoredTensor

if TYPE_CHECKING:
    from burn.box import Box
    from burn.nn.module import Module

#: Whether a key is wanted.
Predicate = Callable[[str], bool]


class Origin(Protocol):
    """Where tensors are read from and written to."""

    @property
    def name(self) -> str:
        """What errors call it."""
        ...

    def read(self) -> Content:
        """What is there; raises what the format's reader does."""
        ...

    def write(
        self,
        tensors: Mapping[str, StoredTensor],
        metadata: Mapping[str, str],
        precision: Precision | None,
    ) -> None:
        """Replace all that is there."""
        ...


@dataclass(frozen=True, eq=False)
class Given:
    """Tensors of this process, for instance of another module."""

    held: Mapping[str, StoredTensor]
    name: str = "tensors"

    def read(self) -> Content:
        return Content(self.held)

    def write(
        self,
        tensors: Mapping[str, StoredTensor],
        metadata: Mapping[str, str],
        precision: Precision | None,
    ) -> None:
        raise RecordError("expected a file to write to, got tensors")


@dataclass(frozen=True, eq=False)
class Store:
    """Where the weights of a module are, and what to do on the way.

    A store does not change: each method returns another one. On loading, keys of the
    file are first renamed, then numbered without gaps, then put into Burn's layout or
    PyTorch's, and then selected. On saving, keys of the module are selected and then
    renamed. Filters say what is wanted; of several, one is enough. ``Store()`` is for
    ``to_bytes``.
    """

    origin: Origin = Given({})
    rules: tuple[Rule, ...] = ()
    filters: tuple[Predicate, ...] = ()
    is_partial: bool = False
    is_converting: bool = False
    is_renumbering: bool = False
    is_in_burn_layout: bool = False
    about: Mapping[str, str] = field(default_factory=dict)
    precision: Precision | None = None

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        mmap: bool = True,
        most_inflated: int | None = None,
    ) -> Self:
        """The store of a record, or of the index of one in shards.

        A file to save to says by its name in which format (``burn.record.FORMATS``);
        one to load from is recognised. With ``mmap`` it is mapped, and read when its
        weights are used. A compressed one may grow to ``most_inflated`` bytes, or by
        default to 20 times its size and at least to 64 MiB.
        """
        return cls(FileOrigin(path, mmap, most_inflated))

    @classmethod
    def from_bytes(cls, data: bytes, format_name: str = "bin") -> Self:
        """The store of a record in memory. All formats but ``bin`` are recognised."""
        return cls(BytesOrigin(data, format_name))

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Any]) -> Self:
        """The store of tensors or arrays by key, such as a ``state_dict()``."""
        return cls(Given({key: InMemory(value) for key, value in tensors.items()}))

    def with_key_remapping(self, pattern: str, replacement: str) -> Self:
        """Rename: every match of the regex becomes ``replacement`` (``\\1`` a group).

        Several are applied in the order given, each to what the last one made.
        """
        return replace(self, rules=(*self.rules, (re.compile(pattern), replacement)))

    def with_regex(self, *patterns: str) -> Self:
        """Want the keys in which one of the regexes is found."""
        searches = [re.compile(pattern).search for pattern in patterns]
        return self._wanting(*(_finds(search) for search in searches))

    def with_full_path(self, *keys: str) -> Self:
        """Want exactly these keys."""
        return self._wanting(frozenset(keys).__contains__)

    def with_predicate(self, *wanted: Predicate) -> Self:
        """Want the keys for which one of the functions is true."""
        return self._wanting(*wanted)

    def _wanting(self, *filters: Predicate) -> Self:
        return replace(self, filters=(*self.filters, *filters))

    def allow_partial(self, allowed: bool = True) -> Self:
        """Load what fits, and report the rest instead of raising."""
        return replace(self, is_partial=allowed)

    def convert_dtypes(self, wanted: bool = True) -> Self:
        """Load floats into floats of another dtype, and integers into integers."""
        return replace(self, is_converting=wanted)

    def map_indices_contiguous(self, wanted: bool = True) -> Self:
        """Close the gaps that functions leave in the numbers of an ``nn.Sequential``.

        Numbers that the module has too stay as they are.
        """
        return replace(self, is_renumbering=wanted)

    def in_burn_layout(self, wanted: bool = True) -> Self:
        """Read and write the keys and layouts of Burn in place of PyTorch's."""
        return replace(self, is_in_burn_layout=wanted)

    def with_metadata(self, key: str, value: str) -> Self:
        """Write a text about the record into it."""
        return replace(self, about={**self.about, key: value})

    def with_precision(self, precision: Precision | None) -> Self:
        """Write all floats in one dtype and all integers in another.

        ``full`` is float32 and int32, ``half`` float16 and int16, ``double`` float64
        and int64. Such a record says so, and is converted back when it is loaded.
        """
        return replace(self, precision=precision)

    def load(self, module: Module) -> Report:
        """What was loaded into ``module``, key by key.

        Raises:
            WeightsError: something is missing, unexpected, of another shape or dtype;
                all of it is listed, and the module is as before.
            RecordError: the file is damaged or of another kind; likewise.
            OSError: it cannot be opened.
        """
        boxes = dict(module.boxes())
        content = self.origin.read()
        offered, rows = self._offered(content, module, boxes)
        convert = self.is_converting or content.has_precision
        fitted = fit(boxes, offered, selected=self.wants, convert=convert)
        fitted.rows += rows
        if not self.is_partial:
            fitted.report.check(self.origin.name)
        fitted.apply()
        return fitted.report

    def save(self, module: Module) -> None:
        """Write the state of ``module``, a tied tensor once, whole or not at all.

        Raises:
            RecordError: two keys are renamed to one; the format cannot hold a name or
                a dtype.
            OSError: the disk or the directory does not allow it.
        """
        self.origin.write(self.collected(module), self.about, self.precision)

    def to_bytes(self, module: Module, format_name: str = "bin") -> bytes:
        """The record that ``save`` would write, in a format of ``burn.record.FORMATS``.

        Raises:
            RecordError: as ``save`` does; there is no such format.
        """
        arrays = ((k, tensor.array()) for k, tensor in self.collected(module).items())
        return record_bytes(format_name, arrays, self.about, precision=self.precision)

    def collected(self, module: Module) -> Mapping[str, StoredTensor]:
        """What ``save`` writes: the wanted tensors of ``module`` by their new keys.

        Raises:
            RecordError: two keys are renamed to one.
        """
        first: dict[Box, str] = {}
        for key, box in module.boxes():
            if self.wants(key):
                first.setdefault(box, key)
        tensors: Mapping[str, StoredTensor] = {
            key: InMemory(box.value) for box, key in first.items()
        }
        if self.is_in_burn_layout:
            tensors = to_burn(tensors, module)
        result, twice = _by_new_key(
            tensors, {k: renamed(k, self.rules) for k in tensors}
        )
        if twice:
            raise RecordError(joined([f"{shown(k)}: {why}" for k, why in twice]))
        return result

    def wants(self, key: str) -> bool:
        """Whether the filters select ``key``."""
        return not self.filters or any(wanted(key) for wanted in self.filters)

    def _offered(
        self, content: Content, module: Module, boxes: Iterable[str]
    ) -> tuple[Mapping[str, StoredTensor], list[Row]]:
        """The file's tensors by the module's keys, and rows of what is left out."""
        keys = {name: renamed(name, self.rules) for name in content.tensors}
        if self.is_renumbering:
            closed = renumbered(tuple(keys.values()), tuple(boxes))
            keys = {name: closed[key] for name, key in keys.items()}
        offered, twice = _by_new_key(content.tensors, keys)
        rows = [Row("clash", key, why) for key, why in twice if self.wants(key)]
        rows += [Row("skipped", *pair) for pair in content.skipped.items()]
        if self.is_in_burn_layout:
            offered = from_burn(offered, module)
        return offered, rows


def _finds(search: Callable[[str], re.Match[str] | None]) -> Predicate:
    return lambda key: search(key) is not None


def _by_new_key(
    tensors: Mapping[str, StoredTensor], keys: Mapping[str, str]
) -> tuple[dict[str, StoredTensor], list[tuple[str, str]]]:
    """Tensors by new keys, and (key, problem) of those that others have already."""
    result: dict[str, StoredTensor] = {}
    names: dict[str, str] = {}
    twice = []
    for name, tensor in tensors.items():
        key = keys[name]
        if names.setdefault(key, name) == name:
            result[key] = tensor
        else:
            description = described(tensor.dtype, tensor.shape)
            both = f"{shown(names[key])} and {shown(name)}"
            twice.append((key, f"{description}, renamed from both {both}"))
    return result, twice
