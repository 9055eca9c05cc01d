"""Modules: classes whose fields are parameters, buffers and other modules."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from burn.attribute_hints import MODULES, add_hints
from burn.backend.base import Backend
from burn.box import Box, Parameter, note_replacement
from burn.nn.fields import check_backend, refuse_containers
from burn.nn.patterns import selected
from burn.tensor import Tensor

if TYPE_CHECKING:
    from pathlib import Path

#: A name in keys for the members of a list, with the number of the first.
_NUMBERED = re.compile(r"([\w.]+)\{(\d+)\}([\w.]*)")


def _refuse_call(self: Any, *args: Any, **kwargs: Any) -> None:
    raise TypeError(
        f"{type(self).__name__} has no __call__: rename forward to __call__"
    )


class Module:
    """The base class of models. Fields that are boxes or modules are its state.

    Write ``__init__`` (starting with ``super().__init__()``) and ``__call__``; the path
    of attributes to a parameter is its key in the record.
    """

    #: How Burn calls fields that have another name there, and which of its matrices
    #: are the other way round (``Store.in_burn_layout``).
    names_in_burn: ClassVar[Mapping[str, str]] = {}
    turned_in_burn: ClassVar[tuple[str, ...]] = ()
    #: The names in keys of fields that have another name in Python: PyTorch has modules
    #: called ``boxes`` or ``0``, which are no attributes here. The members of a list
    #: with the name ``layer{1}`` are ``layer1``, ``layer2``, ... in keys. The name
    #: ``encoder.stages`` is that of a field in a module which has no class here; so is
    #: ``stages.{0}.conv``, in each of the modules ``stages.0``, ``stages.1``, ...
    record_names: ClassVar[Mapping[str, str]] = {}
    #: The path that all keys of the fields begin with, such as "model": that of a
    #: module in the author's code whose only caller has no class here.
    record_prefix: ClassVar[str] = ""
    #: The record of a generated model, which ``load`` reads: its path, or its bytes.
    WEIGHTS: ClassVar[str | Path | bytes]

    def __init__(self) -> None:
        """Do nothing; defined so that subclasses can call it."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Make calls of a class with PyTorch's ``forward`` raise a helpful error."""
        super().__init_subclass__(**options)
        is_callable = any("__call__" in vars(base) for base in cls.__mro__)
        if "forward" in vars(cls) and not is_callable:
            cls.__call__ = _refuse_call  # type: ignore[method-assign]

    if not TYPE_CHECKING:  # a type checker would take any name for a field

        def __setattr__(self, name: str, value: Any) -> None:
            old = vars(self).get(name)
            if old is not None and old is not value and isinstance(old, Box | Module):
                note_replacement()
            object.__setattr__(self, name, value)

    @refuse_containers
    def children(self) -> Iterator[tuple[str, Any]]:
        """Yield the fields with state: (name, box or module), in order of definition.

        Names are those in keys (``record_prefix``, ``record_names``).

        Raises:
            TypeError: a field without leading underscore is a plain list, tuple or dict
                of modules or boxes, which must be a ``ModuleList``.
        """
        for name, value in vars(self).items():
            if isinstance(value, Box | Module):
                name = self.record_names.get(name, name)
                if self.record_prefix:
                    name = f"{self.record_prefix}.{name}"
                numbered = _NUMBERED.fullmatch(name)
                if numbered is None:
                    yield name, value
                    continue
                assert isinstance(value, Module)
                for index, member in value.children():
                    number = int(numbered[2]) + int(index)
                    yield f"{numbered[1]}{number}{numbered[3]}", member

    def boxes(self) -> Iterator[tuple[str, Box]]:
        """Yield (path, box) for the state; a tied box appears at each of its paths."""
        for name, value in self.children():
            if isinstance(value, Box):
                if value.recorded:
                    yield name, value
            else:
                for path, box in value.boxes():
                    yield f"{name}.{path}", box

    def parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Yield (path, parameter), tied ones once, under their first path."""
        seen: set[Box] = set()
        for path, box in self.boxes():
            if isinstance(box, Parameter) and box not in seen:
                seen.add(box)
                yield path, box

    def modules(self) -> Iterator[tuple[str, Module]]:
        """Yield (path, module) for all submodules, itself first under the path
        ``""``.
        """
        yield "", self
        for name, value in self.children():
            if isinstance(value, Module):
                for path, module in value.modules():
                    yield (f"{name}.{path}" if path else name), module

    def state_dict(self) -> dict[str, Tensor]:
        """Return the tensors of the state by path, without history.

        Buffers with ``persistent=False`` are not included.
        """
        persistent = (pair for pair in self.boxes() if pair[1].persistent)
        return {path: box.value.detach() for path, box in persistent}

    def load_state_dict(self, state: dict[str, Any]) -> Self:
        """This module with its boxes set from ``state`` (tensors or arrays by path).

        Arrays are copied, and may be changed afterwards; tensors and read-only arrays
        (those of mapped records) are shared. A tied box is set by any of its keys.
        PyTorch's ``num_batches_tracked``, which no result depends on, may be there.
        Buffers with ``persistent=False`` keep the value that they have from the record.

        Raises:
            WeightsError: keys are missing or unexpected, a shape or dtype differs, or
                keys of one tied box have different values; all of them are listed and
                nothing is set.
        """
        from burn.store import InMemory, fit

        fitted = fit(dict(self.boxes()), {key: InMemory(v) for key, v in state.items()})
        fitted.report.check()
        fitted.apply()
        return self

    @classmethod
    def load(
        cls,
        weights: Any = None,  # earlier files override it with str | Path
        backend: Backend | None = None,
        *,
        verify: bool = False,
    ) -> Self:
        """The model with its trained weights, on ``backend`` (the CPU by default).

        It is made without arguments, then ``load_weights`` reads ``weights``: the path
        of a record or its bytes, or those of the class (``WEIGHTS``) if None.

        Raises:
            TypeError: there is none; the others are those of ``load_weights``.
        """
        from burn.nn.record_checks import record_of

        record = record_of(cls, weights)  # before a layer misses its arguments
        return cls().load_weights(record, backend, verify=verify)

    def load_weights(
        self,
        weights: str | Path | bytes | None = None,
        backend: Backend | None = None,
        *,
        mmap: bool = True,
        verify: bool = False,
        strict: bool = True,
    ) -> Self:
        """This module with the weights of a safetensors record, moved to ``backend``.

        ``weights`` is its path, or its bytes; if None, the class has one in
        ``WEIGHTS``, as generated models do. A file is mapped, not read: weights come
        into memory when they are used. With ``verify`` all of it is read once, and has
        to be the record that a generated module was written with: the header of its
        source has the SHA-256. Unless ``strict``, keys that fit are loaded, and the
        result for every key is printed.

        Raises:
            burn.record.RecordError: the file is damaged or of another kind; with
                ``verify`` also if it has another digest, or the source has none.
            WeightsError: the record does not fit this module, if ``strict``.
            FileNotFoundError: there is none.
            TypeError: there is none, ``weights`` is neither, ``backend`` no backend.
        """
        from burn.nn import record_checks
        from burn.store import Store

        weights = record_checks.record_of(type(self), weights)
        record_checks.check_source(type(self), weights)
        if backend is not None:
            check_backend(type(self), backend)
        try:
            if verify:
                record_checks.check_record(type(self), weights)
            if isinstance(weights, bytes):
                store = Store.from_bytes(weights)
            else:
                store = Store.from_file(weights, mmap=mmap)
            report = store.allow_partial(not strict).load(self)
        except FileNotFoundError as error:
            raise record_checks.missing_record(type(self), error) from None
        if not strict:
            print(report)
        return self if backend is None else self.to(backend)

    def save_weights(
        self, path: str | Path, *, shard_size: int | str | None = "5GB"
    ) -> None:
        """Write the state as a safetensors record, atomically.

        A record larger than ``shard_size`` is written in several files of at most this
        size with an index, as Hugging Face's libraries do; ``load_weights(path)`` finds
        them. None writes one file.

        Raises:
            ValueError: ``shard_size`` is no size.
            OSError: a file cannot be written.
        """
        from burn.store import Store

        Store.from_file(path, shard_size=shard_size).save(self)

    def to(self, backend: Backend) -> Self:
        """Move the state to ``backend`` in place, and return this module.

        Raises:
            TypeError: ``backend`` is not a backend.
        """
        check_backend(type(self), backend)
        for box in self._all_boxes():
            box.to(backend)
        return self

    def valid(self) -> Self:
        """Return a copy for inference: on the backend below ``Autodiff``, sharing
        the data.
        """
        copies: dict[int, Any] = {}
        for box in self._all_boxes():
            copied = copy.copy(box)
            copied.to(box.backend.inner)
            copies[id(box)] = copied
        return copy.deepcopy(self, copies)

    def _all_boxes(self) -> list[Box]:
        boxes: dict[Box, None] = {}
        for _, module in self.modules():
            boxes.update({b: None for _, b in module.children() if isinstance(b, Box)})
        return list(boxes)

    def freeze(self, pattern: str = "*") -> Self:
        """Exclude the parameters whose paths match from training; return this module.

        ``pattern`` is one of :mod:`fnmatch`, and also matches descendants of a path.
        Running statistics of norms are still updated in training.

        Raises:
            ValueError: no parameter matches.
        """
        return self._require_grad(pattern, False)

    def unfreeze(self, pattern: str = "*") -> Self:
        """Train the parameters whose paths match again; return this module.

        Raises:
            ValueError: no parameter matches.
        """
        return self._require_grad(pattern, True)

    def _require_grad(self, pattern: str, wanted: bool) -> Self:
        parameters = dict(self.parameters())
        for path in selected(parameters, pattern):
            parameters[path].requires_grad = wanted
        return self

    def num_parameters(self) -> int:
        """Return the number of elements of all parameters, including frozen ones."""
        return sum(
            int(np.prod(box.shape, dtype=np.int64)) for _, box in self.parameters()
        )

    def describe(self) -> str:
        """Return the arguments for ``repr``; layers override it."""
        return ""

    def __repr__(self) -> str:
        lines = [
            f"  ({name}): " + repr(value).replace("\n", "\n  ")
            for name, value in self.children()
            if isinstance(value, Module)
        ]
        head = f"{type(self).__name__}({self.describe()}"
        return head + ("\n" + "\n".join(lines) + "\n)" if lines else ")")

    def _repr_html_(self) -> str:
        """Return HTML for notebooks."""
        from burn.notebook import module_html

        return module_html(self)


add_hints(Module, MODULES)
