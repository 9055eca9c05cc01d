"""Activation checkpointing: values are recomputed in the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from burn.backend.tape import Leaf, Node, Output, swept
from burn.box import Box, PassingReader, Reader, current_reader, reading
from burn.nn.calls import is_callable
from burn.nn.mixins import Mixin, mix_in
from burn.nn.module import Module
from burn.nn.patterns import outermost
from burn.plan.pytree import mapped
from burn.primitive import RECORDER, recording
from burn.tensor import Tensor

P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M", bound=Module)


def checkpoint(model: M, pattern: str) -> M:
    """Turn on activation checkpointing for modules, in place, and return ``model``.

    A training step stores the arguments of such a module, and computes the values
    inside again in the backward pass (see :func:`checkpointed`). Keys of weights and
    results do not change. Use it on the blocks of a deep network::

        nn.checkpoint(model, "encoder.layer.*")

    Args:
        model: the model to change.
        pattern: a path, or a pattern of paths as in :meth:`Module.freeze`. Of a module
            and its submodules the outermost is chosen.

    Raises:
        ValueError: no module matches.
    """
    paths = {path: m for path, m in model.modules() if path and is_callable(m)}
    for path in outermost(paths, pattern):
        mix_in(paths[path], _Checkpointed)
    return model


class _Checkpointed(Mixin):
    """Mixin of modules whose calls are checkpointed."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call: Any = super().__call__  # type: ignore[misc]
        return checkpointed(call)(*args, **kwargs)


def checkpointed(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function with the results of ``function``, computed again by backward.

    Its arguments are stored and the values inside are not, as with
    ``torch.utils.checkpoint``: less memory, for the time of another forward pass.
    Results have the same bits, and so have gradients, but for the order of sums where a
    tensor is used more than once. Random layers draw the same numbers again, and
    running statistics move once. ``function`` takes and returns tensors, and lists,
    tuples and dicts of them. On nested ``Autodiff`` backends the values for the
    gradients of the inner ones are stored.

    Raises:
        RuntimeError: in the backward pass, if the function returns tensors of other
            shapes than before, because something that it reads has changed.
    """

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        boxes, start = _Boxes(current_reader()), Node()
        forward = _Forward(function, args, kwargs, copy_context(), boxes, start)
        with reading(boxes):
            result = function(*args, **kwargs)
        outputs = forward.outputs(result)
        if not outputs:
            return result
        node = _Recomputed(forward, outputs)
        nodes = {id(t): Output(node, k) for k, t in enumerate(outputs)}

        def relinked(leaf: Any) -> Any:
            output = nodes.get(id(leaf))
            return leaf if output is None else Tensor(leaf.data, leaf.backend, output)

        replaced: R = mapped(relinked, result)
        return replaced

    return call


@dataclass(frozen=True)
class _Forward:
    """A call of a function, with everything needed to repeat it.

    ``start`` is older than every node that the call adds to a tape.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    context: Context
    boxes: _Boxes
    start: Node

    def repeated(self) -> list[Tensor]:
        """Return the outputs of a repeated call, in the context of the first one."""
        return self.context.copy().run(self._repeat)

    def _repeat(self) -> list[Tensor]:
        recorder = RECORDER.get()
        with (
            recording(recorder) if recorder is not None else nullcontext(),
            reading(_RepeatedBoxes(self.boxes, current_reader())),
        ):
            return self.outputs(self.function(*self.args, **self.kwargs))

    def outputs(self, result: Any) -> list[Tensor]:
        """Return the tensors of a result that the call added to the outermost tape."""
        tensors: dict[int, Tensor] = {}

        def note(leaf: Any) -> None:
            if isinstance(leaf, Tensor) and self.is_new(leaf.node):
                tensors[id(leaf)] = leaf

        mapped(note, result)
        level = max((t.backend.level for t in tensors.values()), default=0)
        return [t for t in tensors.values() if t.backend.level == level]

    def is_new(self, node: Any) -> bool:
        """Return whether the call added a node to a tape. Leaves belong to boxes."""
        is_inner = isinstance(node, Node) and not isinstance(node, Leaf)
        return is_inner and node.order > self.start.order


class _Recomputed(Node):
    """A call whose part of the tape is recorded in the backward pass."""

    __slots__ = ("forward", "shapes", "sources")

    def __init__(self, forward: _Forward, outputs: list[Tensor]) -> None:
        super().__init__()
        self.forward = forward
        #: The shapes of the results.
        self.shapes = [tensor.shape for tensor in outputs]
        self.sources = _sources(outputs, forward)

    @property
    def result_count(self) -> int:
        """The number of results, each of which has an ``Output``."""
        return len(self.shapes)

    def parents(self) -> Iterator[Node]:
        yield from self.sources

    def backward(self, grad: Any) -> Iterator[tuple[Node, Any]]:
        outputs = self.forward.repeated()
        shapes = [tensor.shape for tensor in outputs]
        if shapes != self.shapes:
            raise RuntimeError(
                "a checkpointed function did not repeat its forward pass: expected "
                f"outputs of shapes {self.shapes}, got {shapes}"
            )
        seeds: dict[Node, Any] = {}
        for output, part in zip(outputs, grad, strict=True):
            if part is not None:
                earlier = seeds.get(output.node)
                seeds[output.node] = part if earlier is None else earlier + part
        for node, share in swept(seeds, self.sources).items():
            if node in self.sources:
                yield node, share


def _sources(outputs: list[Tensor], forward: _Forward) -> frozenset[Node]:
    """Return the earlier nodes that the outputs of a call depend on, and leaves."""
    seen = {tensor.node for tensor in outputs}
    stack, sources = list(seen), set()
    while stack:
        for node in stack.pop().parents():
            if not forward.is_new(node):
                sources.add(node)
            elif node not in seen:
                seen.add(node)
                stack.append(node)
    return frozenset(sources)


class _Boxes(PassingReader):
    """A reader that stores the values of boxes at their first read."""

    def __init__(self, outer: Reader | None) -> None:
        super().__init__(outer)
        self.values: dict[Box, Tensor] = {}

    def read(self, box: Box) -> Tensor:
        value = super().read(box)
        self.values.setdefault(box, value)
        return value


class _RepeatedBoxes(PassingReader):
    """A reader that returns the stored values of boxes; setting one has no effect."""

    def __init__(self, first: _Boxes, outer: Reader | None) -> None:
        super().__init__(outer)
        self._values = dict(first.values)

    def read(self, box: Box) -> Tensor:
        value = self._values.get(box)
        return super().read(box) if value is None else value

    def write(self, box: Box, value: Tensor) -> Tensor:
        held = box.held()
        self._values[box] = value.detach().to(held.backend)
        return held
