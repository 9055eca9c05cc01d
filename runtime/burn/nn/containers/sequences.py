"""Sequences of modules and parameters; their keys are positions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar, TypeVarTuple, cast, overload

from burn.box import Box, note_replacement
from burn.nn.module import Module
from burn.tensor import Tensor

M = TypeVar("M", bound="Module")
Ts = TypeVarTuple("Ts")


class ModuleList(Module, Generic[M]):
    """A list of modules; their keys are ``0``, ``1``, ..."""

    def __init__(self, modules: Iterable[M] = ()) -> None:
        super().__init__()
        self._items = list(modules)

    def children(self) -> Iterator[tuple[str, Any]]:
        for index, module in enumerate(self._items):
            yield str(index), module

    def append(self, module: M) -> None:
        """Append ``module``."""
        self._items.append(module)

    def __iter__(self) -> Iterator[M]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> M: ...
    @overload
    def __getitem__(self, index: slice) -> ModuleList[M]: ...
    def __getitem__(self, index: int | slice) -> Any:
        items = self._items[index]
        return ModuleList(items) if isinstance(items, list) else items

    def __setitem__(self, index: int, module: M) -> None:
        self._items[index] = module
        note_replacement()


class ParameterList(Module):
    """A list of parameters and buffers; their keys are ``0``, ``1``, ...

    None occupies a number and is not part of the state.
    """

    def __init__(self, boxes: Iterable[Box | None] = ()) -> None:
        super().__init__()
        self._boxes = list(boxes)

    def children(self) -> Iterator[tuple[str, Any]]:
        for index, box in enumerate(self._boxes):
            if box is not None:
                yield str(index), box

    def __getitem__(self, index: int) -> Box:
        """Return the parameter with that number, or raise ``IndexError``."""
        box = self._boxes[index]
        if box is None:
            raise IndexError(f"expected a parameter at {index}, found None")
        return box

    def __iter__(self) -> Iterator[Box]:
        return (box for box in self._boxes if box is not None)

    def __len__(self) -> int:
        return len(self._boxes)


class Sequential(Module):
    """Modules and functions applied in sequence; keys are their positions.

    A function (``ops.relu``) has no state and occupies a position, as in PyTorch.
    """

    def __init__(self, *steps: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        for step in steps:
            if not callable(step) and not isinstance(step, Module):
                raise TypeError(
                    "expected modules and functions, as in nn.Sequential(*layers), "
                    f"got {type(step).__name__}"
                )
        self._steps = list(steps)

    def children(self) -> Iterator[tuple[str, Any]]:
        for index, step in enumerate(self._steps):
            if isinstance(step, Module):
                yield str(index), step

    def __getitem__(self, index: int | slice) -> Any:
        steps = self._steps[index]
        return Sequential(*steps) if isinstance(steps, list) else steps

    def __setitem__(self, index: int, step: Callable[[Tensor], Tensor]) -> None:
        self._steps[index] = step
        note_replacement()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._steps)

    def __len__(self) -> int:
        return len(self._steps)

    def __call__(self, x: Tensor) -> Tensor:
        for step in self._steps:
            x = step(x)
        return x


class ModuleTuple(tuple[*Ts], Module):
    """A list of modules of several classes with static types. Keys are numbers."""

    def __new__(cls, *modules: *Ts) -> ModuleTuple[*Ts]:
        return super().__new__(cls, modules)

    def __init__(self, *modules: *Ts) -> None:
        super().__init__()

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(cast("tuple[Any, ...]", self))

    def children(self) -> Iterator[tuple[str, Any]]:
        for index, module in enumerate(cast("tuple[Any, ...]", self)):
            yield str(index), module

    __repr__ = Module.__repr__
    __hash__ = object.__hash__
