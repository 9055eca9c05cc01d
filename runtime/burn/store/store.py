"""Stores: files of tensors, with a mapping of their keys to those of a module."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from burn.record import Precision, record_bytes
from burn.record.errors import RecordError, joined, shown
from burn.store.files import BytesOrigin, FileOrigin
from burn.store.layout import from_burn, to_burn
from burn.store.names import Rule, rename, renumber
from burn.store.report import Report, Row
from burn.store.tensor_matching import fit, type_text
from burn.store.tensors import Content, InMemory, StoredTensor

if TYPE_CHECKING:
    from burn.box import Box
    from burn.nn.module import Module

#: Returns whether a key is selected.
Predicate = Callable[[str], bool]


class Origin(Protocol):
    """A source and destination of tensors."""

    @property
    def name(self) -> str:
        """The name for error messages."""
        ...

    def read(self) -> Content:
        """Return the content, or raise the errors of the format's reader."""
        ...

    def write(
        self,
        tensors: Mapping[str, StoredTensor],
        metadata: Mapping[str, str],
        precision: Precision | None,
    ) -> None:
        """Replace the content."""
        ...


class InMemorySource(NamedTuple):
    """Tensors in memory, for instance of another module."""

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
    """A source or destination of weights, with options for loading and saving.

    A store is immutable: each method returns a new one. On loading, file keys are first
    renamed, then renumbered, then converted between Burn's layout and PyTorch's, and
    then filtered. On saving, module keys are filtered and then renamed. A key is
    selected if one of the filters matches. ``Store()`` is for ``to_bytes``.
    """

    origin: Origin = InMemorySource({})
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
        shard_size: int | str | None = None,
    ) -> Self:
        """Return the store of a record, or of the index of a sharded one.

        The name of a file to save to determines its format (``burn.record.FORMATS``);
        the format of a file to load from is detected. With ``mmap`` the file is mapped,
        and read when its weights are used. A compressed file may decompress to
        ``most_inflated`` bytes, by default 20 times its size and at least 64 MiB.
        Safetensors larger than ``shard_size`` are saved in files of at most this size
        (``burn.record.write_record``).
        """
        return cls(FileOrigin(path, mmap, most_inflated, shard_size))

    @classmethod
    def from_bytes(cls, data: bytes, format_name: str = "bin") -> Self:
        """Return the store of a record in memory; ``bin`` is not detected."""
        return cls(BytesOrigin(data, format_name))

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Any]) -> Self:
        """Return the store of tensors or arrays by key, such as a ``state_dict()``."""
        return cls(
            InMemorySource({key: InMemory(value) for key, value in tensors.items()})
        )

    def with_key_remapping(self, pattern: str, replacement: str) -> Self:
        """Return a store that replaces each match of the regex (``\1`` is a group).

        Several mappings are applied in order, each to the result of the one before.
        """
        return replace(self, rules=(*self.rules, (re.compile(pattern), replacement)))

    def with_regex(self, *patterns: str) -> Self:
        """Return a store that selects keys in which one of the regexes is found."""
        searches = [re.compile(pattern).search for pattern in patterns]
        return self._wanting(*(_finds(search) for search in searches))

    def with_full_path(self, *keys: str) -> Self:
        """Return a store that selects exactly these keys."""
        return self._wanting(frozenset(keys).__contains__)

    def with_predicate(self, *wanted: Predicate) -> Self:
        """Return a store that selects keys for which some function returns true."""
        return self._wanting(*wanted)

    def _wanting(self, *filters: Predicate) -> Self:
        return replace(self, filters=(*self.filters, *filters))

    def allow_partial(self, allowed: bool = True) -> Self:
        """Return a store that loads matching keys, and only reports the others."""
        return replace(self, is_partial=allowed)

    def convert_dtypes(self, wanted: bool = True) -> Self:
        """Return a store that converts between floats, and between integers."""
        return replace(self, is_converting=wanted)

    def map_indices_contiguous(self, wanted: bool = True) -> Self:
        """Return a store that renumbers layers of ``nn.Sequential`` consecutively.

        Numbers that the module also has are unchanged.
        """
        return replace(self, is_renumbering=wanted)

    def in_burn_layout(self, wanted: bool = True) -> Self:
        """Return a store with the keys and layouts of Burn instead of PyTorch's."""
        return replace(self, is_in_burn_layout=wanted)

    def with_metadata(self, key: str, value: str) -> Self:
        """Return a store that writes a metadata entry into the record."""
        return replace(self, about={**self.about, key: value})

    def with_precision(self, precision: Precision | None) -> Self:
        """Return a store that writes all floats in one dtype, all integers in another.

        ``full`` is float32 and int32, ``half`` float16 and int16, ``double`` float64
        and int64. The record is marked accordingly, and converted back when it is
        loaded.
        """
        return replace(self, precision=precision)

    def load(self, module: Module) -> Report:
        """Load the tensors into ``module``, and return the outcome for every key.

        Raises:
            WeightsError: tensors are missing, unexpected, or of another shape or dtype;
                all of them are listed, and the module is unchanged.
            RecordError: the file is damaged or of another kind; likewise.
            OSError: the file cannot be opened.
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
        """Write the state of ``module`` atomically, a tied tensor once.

        Raises:
            RecordError: two keys have the same new name, or the format does not support
                a name or a dtype.
            OSError: the file cannot be written.
        """
        self.origin.write(self.collected(module), self.about, self.precision)

    def to_bytes(self, module: Module, format_name: str = "bin") -> bytes:
        """Return the record that ``save`` would write, in a format of
        ``burn.record.FORMATS``.

        Raises:
            RecordError: as ``save``, or the format is unknown.
        """
        arrays = ((k, tensor.array()) for k, tensor in self.collected(module).items())
        return record_bytes(format_name, arrays, self.about, precision=self.precision)

    def collected(self, module: Module) -> Mapping[str, StoredTensor]:
        """Return the tensors of ``module`` that ``save`` writes, by their new keys.

        Raises:
            RecordError: two keys have the same new name.
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
            tensors, {k: rename(k, self.rules) for k in tensors}
        )
        if twice:
            raise RecordError(joined([f"{shown(k)}: {why}" for k, why in twice]))
        return result

    def wants(self, key: str) -> bool:
        """Return whether the filters select ``key``."""
        return not self.filters or any(wanted(key) for wanted in self.filters)

    def _offered(
        self, content: Content, module: Module, boxes: Iterable[str]
    ) -> tuple[Mapping[str, StoredTensor], list[Row]]:
        """Return the file's tensors by module keys; report rows of excluded ones."""
        keys = {name: rename(name, self.rules) for name in content.tensors}
        if self.is_renumbering:
            closed = renumber(tuple(keys.values()), tuple(boxes))
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
    """Return tensors by new keys, and (key, problem) for duplicates."""
    result: dict[str, StoredTensor] = {}
    names: dict[str, str] = {}
    twice = []
    for name, tensor in tensors.items():
        key = keys[name]
        if names.setdefault(key, name) == name:
            result[key] = tensor
        else:
            description = type_text(tensor.dtype, tensor.shape)
            both = f"{shown(names[key])} and {shown(name)}"
            twice.append((key, f"{description}, renamed from both {both}"))
    return result, twice
