"""Caches of primitives, per thread, and of packed weights."""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from burn.backend.cpu.onednn.binding.api import DST, SRC, Api
from burn.backend.cpu.onednn.binding.memory import Array
from burn.backend.cpu.onednn.binding.prepared import (
    Description,
    Descriptor,
    Operands,
    Prepared,
    described,
)
from burn.backend.cpu.onednn.binding.scratch import Block, Scratch

#: The maximum number of cached primitives per thread (least recently used eviction).
LIMIT = 1024
#: Work below this takes one thread less time than it takes several to meet.
ALONE = 1_000_000
# A single row uses each weight for one multiplication only, so reading it dominates.
_ROW = 16

Make: TypeAlias = Callable[["Primitives"], Any]


def work_of_row(weights: int) -> int:
    """Return the work to multiply one row by so many weights.

    It is memory-bound, so threads help more than the multiplications suggest.
    """
    return weights * _ROW


def as_hashable(value: Any) -> Any:
    """Return ``value`` with tuples instead of lists, to be hashable."""
    if isinstance(value, list | tuple):
        return tuple(as_hashable(item) for item in value)
    return value


class Primitives(threading.local):
    """A cache of the primitives of one thread, None for unsupported ones.

    Memory objects and scratchpads belong to a run, so threads share neither. The
    library itself caches the generated code for all threads.
    """

    def __init__(self, api: Api) -> None:
        self.api = api
        self.scratch = Scratch(api)
        self._known: OrderedDict[Hashable, Any] = OrderedDict()
        self._by_threads = {api.most_threads: self._known}
        self._alone = False

    def get(self, key: Hashable, make: Make, work: int) -> Any:
        """Return the cached result of ``make`` for ``key``.

        ``work`` is the approximate number of multiplications; if it is large the
        primitive is multithreaded.
        """
        entries = self._known
        try:
            primitive = entries[key]
            entries.move_to_end(key)
        except TypeError:  # a list, which has no hash
            key = as_hashable(key)
            hash(key)  # or this would not end
            return self.get(key, make, work)
        except KeyError:
            primitive = entries[key] = self._make(make, work)
            if len(entries) > LIMIT:
                entries.popitem(last=False)
        return primitive

    @contextmanager
    def limited(self, threads: int) -> Iterator[None]:
        """Limit this thread to ``threads``, by primitives made for that number."""
        with self.api.limited_threads(threads):
            before = self._known
            self._known = self._by_threads.setdefault(self.api.threads, OrderedDict())
            try:
                yield
            finally:
                self._known = before

    def _make(self, make: Make, work: int) -> Any:
        choose = self.api.set_threads
        if work >= ALONE or choose is None:
            return make(self)
        choose(1)
        self._alone = True
        try:
            return make(self)
        finally:
            self._alone = False
            self.api.restore_threads()

    def prepared(self, description: Description, operands: Operands) -> Prepared:
        """Return the primitive of a description, for this thread."""
        return Prepared(description, operands, self.scratch, self._alone)

    def __len__(self) -> int:
        return len(self._known)

    def clear(self) -> None:
        """Remove the primitives of this thread."""
        self._known.clear()

    def implementations(self) -> list[str]:
        """Return the implementation names of this thread's primitives."""
        return [
            primitive.implementation for primitive in self._known.values() if primitive
        ]

    def reorder(self, source: Descriptor, target: Descriptor) -> Prepared | None:
        """Return the primitive that copies from one memory descriptor to another."""
        api = self.api
        description = described(api, "reorder", source, api.engine, target, api.engine)
        if description is None:
            return None
        return self.prepared(description, [(SRC, source), (DST, target)])


class _Weights:
    """A weight array, and its packed forms by layout."""

    __slots__ = ("forms", "reference")

    def __init__(self, reference: "weakref.ref[Array]") -> None:
        self.reference = reference
        self.forms: dict[Hashable, Block] = {}


class Packed:
    """A cache of packed weights, one for all threads.

    A parameter that is set has a new array, so entries are never stale; an entry is
    removed when its array is garbage-collected.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._known: dict[int, _Weights] = {}
        self._layouts: list[Description] = []
        self._lock = threading.RLock()

    def layout(self, description: Description, which: int, index: int = 0) -> int:
        """Return an id of the weight layout that ``description`` requires.

        Equal layouts have the same id, so primitives for several shapes share weights.
        """
        wanted = description.descriptor(which, index)
        with self._lock:
            for number, layout in enumerate(self._layouts):
                if self._api.same(layout.descriptor(which, index), wanted):
                    return number
            self._layouts.append(description)
            return len(self._layouts) - 1

    def seen(self, array: Array) -> bool:
        """Return whether ``array`` was seen before: a parameter, not a temporary."""
        entry = self._known.get(id(array))
        if entry is not None and entry.reference() is array:
            return True
        with self._lock:
            self._add(array)
        return False

    def get(
        self, array: Array, layout: Hashable, pack: Callable[[Array], Block]
    ) -> Block:
        """Return ``array`` in a layout; ``pack`` creates it the first time."""
        entry = self._known.get(id(array))
        if entry is not None and entry.reference() is array:
            form = entry.forms.get(layout)
            if form is not None:
                return form
        with self._lock:
            entry = self._known.get(id(array))
            if entry is None or entry.reference() is not array:
                entry = self._add(array)
            form = entry.forms.get(layout)
            if form is None:
                form = entry.forms[layout] = pack(array)
        return form

    def drop(self, array: Array) -> None:
        """Remove the packed forms of ``array``; current users keep them alive."""
        with self._lock:
            entry = self._known.get(id(array))
            if entry is not None and entry.reference() is array:
                entry.forms.clear()

    def _add(self, array: Array) -> _Weights:
        identity = id(array)

        def gone(reference: "weakref.ref[Array]") -> None:
            # Another array may have the same identity in the meantime.
            entry = self._known.get(identity)
            if entry is not None and entry.reference is reference:
                del self._known[identity]

        added = self._known[identity] = _Weights(weakref.ref(array, gone))
        return added

    def __len__(self) -> int:
        return len(self._known)

    def size(self) -> int:
        """The bytes of all packed weights."""
        with self._lock:
            return sum(
                form.size
                for entry in self._known.values()
                for form in entry.forms.values()
            )
