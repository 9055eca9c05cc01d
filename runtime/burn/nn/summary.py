"""Summaries of modules: layers with result shapes, parameters and memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from burn.backend.base import Backend
from burn.box import Box
from burn.nn.calls import calling
from burn.nn.modes import inference
from burn.nn.module import Module
from burn.tensor import Tensor


class Row(NamedTuple):
    """A module: its path, class, results and state, with that of modules below it.

    ``outputs`` are the shapes and dtypes of the tensors that its first call returned,
    None if it was not called. Tied parameters count at their first path. ``trainable``
    is the number of elements that are not frozen.
    """

    path: str
    name: str
    outputs: tuple[str, ...] | None
    parameters: int
    trainable: int


class Summary(NamedTuple):
    """The table of a model; ``print(summary)`` shows it.

    ``parameters`` and ``trainable`` are numbers of elements, ``weight_bytes`` the
    memory of parameters and buffers, ``result_bytes`` that of the results of all
    modules without modules below them, which training keeps for the most part.
    ``backends`` are those of the parameters: one is an ``Autodiff`` backend while the
    model is in training.
    """

    rows: tuple[Row, ...]
    parameters: int
    trainable: int
    weight_bytes: int
    result_bytes: int
    backends: tuple[Backend, ...] = ()

    def __str__(self) -> str:
        head = ("layer", "class", "result", "parameters", "trained")
        labels = _labels([row.path for row in self.rows])
        table = [head, *map(_cells, labels, self.rows)]
        widths = [max(len(line[i]) for line in table) for i in range(3)]
        lines = [
            "  ".join(
                cell.ljust(width) for cell, width in zip(line, widths, strict=False)
            )
            + f"  {line[3]:>12}  {line[4]:>12}"
            for line in table
        ]
        lines.append(f"{self.parameters:,} parameters, {self.trainable:,} trained")
        lines += [
            f"on {home}: {'training' if home.tracks_gradients else 'inference'}"
            for home in self.backends
        ]
        lines.append(
            f"{_bytes(self.weight_bytes)} of weights, "
            f"{_bytes(self.result_bytes)} of results"
        )
        return "\n".join(line.rstrip() for line in lines)


def summary(model: Module, *args: Any, **kwargs: Any) -> Summary:
    """Return the layers of ``model``, with the results of ``model(*args, **kwargs)``.

    The call runs as inference, on the device of the arguments. Without arguments there
    is none, and the table has no results.
    """
    results: dict[int, Any] = {}

    def observe(module: Module, result: Any) -> Any:
        results.setdefault(id(module), result)
        return result

    if args or kwargs:
        with inference(), calling(model, observe):
            model(*args, **kwargs)  # type: ignore[operator]
    boxes = {box for _, box in model.boxes()}
    parameters = [box for _, box in model.parameters()]
    leaves = [m for m in _unique(model) if not _below(m)]
    return Summary(
        tuple(_rows(model, results)),
        sum(_size(p) for p in parameters),
        sum(_size(p) for p in parameters if p.requires_grad),
        sum(_nbytes(box) for box in boxes),
        sum(_nbytes(t) for m in leaves for t in _tensors(results.get(id(m)))),
        tuple(dict.fromkeys(box.held().backend for box in parameters)),
    )


def _rows(model: Module, results: dict[int, Any]) -> Iterator[Row]:
    sizes = {
        f".{path}": (_size(box), _size(box) if box.requires_grad else 0)
        for path, box in model.parameters()
    }
    for path, module in model.modules():
        shapes = None
        if id(module) in results:
            tensors = _tensors(results[id(module)])
            shapes = tuple(f"{t.dtype.name}{list(t.shape)}" for t in tensors)
        prefix = f".{path}." if path else "."
        own = [size for key, size in sizes.items() if key.startswith(prefix)]
        all_sizes, trained = (sum(size[part] for size in own) for part in (0, 1))
        yield Row(path, type(module).__name__, shapes, all_sizes, trained)


def _below(module: Module) -> list[Module]:
    return [child for _, child in module.children() if isinstance(child, Module)]


def _unique(model: Module) -> list[Module]:
    return list({id(m): m for _, m in model.modules()}.values())


def _size(value: Box | Tensor) -> int:
    return math.prod(value.shape)


def _nbytes(value: Box | Tensor) -> int:
    return _size(value) * value.dtype.itemsize


def _tensors(result: Any) -> Iterator[Tensor]:
    if isinstance(result, Tensor):
        yield result
    elif isinstance(result, list | tuple):
        for item in result:
            yield from _tensors(item)
    elif isinstance(result, dict):
        for item in result.values():
            yield from _tensors(item)


def _labels(paths: Sequence[str]) -> Iterator[str]:
    """Yield the name of each module in the module around it, indented by depth.

    A name has several segments if ``record_names`` say so. Parents come first.
    """
    around: list[str] = []
    for path in paths:
        while around and not path.startswith(f"{around[-1]}."):
            around.pop()
        name = path.removeprefix(f"{around[-1]}." if around else "")
        yield "  " * (len(around) + 1) + name if path else "(model)"
        around += [path] if path else []


def _cells(label: str, row: Row) -> tuple[str, str, str, str, str]:
    outputs = "-" if row.outputs is None else ", ".join(row.outputs) or "none"
    return label, row.name, outputs, f"{row.parameters:,}", f"{row.trainable:,}"


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} GiB"
