"""Decoders with fixed-capacity, in-place key-value caches."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from burn import ops
from burn.box import Buffer
from burn.dtypes import HALVES, int64
from burn.generation.binding import Binding, BindingError
from burn.nn.module import Module
from burn.ops.caches import update_slice
from burn.plan.compiled import Compiled
from burn.tensor import Tensor, from_numpy

#: Chooses a token of each row of logits: [batch, words] -> [batch].
Select = Callable[[Tensor], Tensor]
#: The largest difference of logits in a trial, relative to the largest one.
_MOST, _MOST_HALF = 1e-3, 2e-2


class CapacityError(ValueError):
    """The tokens exceed the capacity of the cache of a decoder."""


def greedy(logits: Tensor) -> Tensor:
    """Return the most probable token of each row: ``[batch, words]`` -> ``[batch]``."""
    return ops.argmax(logits, -1)


class Decoder:
    """A language model with a cache of keys and values of a fixed capacity.

    ``model`` takes tokens ``int64[batch, length]``, an attention mask ``[batch, past +
    length]``, past keys and values ``[batch, heads, past, size]``, and perhaps
    positions; its results are logits and the keys and values with the new ones behind
    the past ones, or written into them (``GroupQueryAttention`` of onnxruntime-genai).
    Inputs are told apart by the declaration of ``nn.check_inputs``, which imported
    models have.

    Every step has the same shapes, so that one plan serves all of them: the past is
    always ``capacity`` entries long, the mask hides those that are not written yet, and
    new keys and values are written in place.

    Attributes:
        length: how many tokens the cache has.
        capacity: how many tokens it has room for.

    Raises:
        BindingError: the inputs or results of the model are others, or the model gives
            other logits with a cache of a fixed capacity (it computes positions from
            the extent of the past, or does not use its mask).
    """

    def __init__(self, model: Module, *, batch: int = 1, capacity: int) -> None:
        self._model: Any = model
        self._binding = Binding.of(model)
        self.batch, self.capacity, self.length = batch, capacity, 0
        self._appends = _appends(model, self._binding, batch)
        self._state = _State(model, self._binding, batch, capacity)
        self._compiled: dict[Any, Compiled[[Tensor], Tensor]] = {}

    def __call__(self, tokens: Tensor, mask: Any = None) -> Tensor:
        """Append ``tokens`` ``int64[batch, length]`` and return their logits.

        Logits are ``[batch, length, words]``. ``mask`` ``[batch, length]`` has zeros
        for padding on the left of the first tokens of each row. Calls with one token
        are compiled; calls with more run eagerly.

        Raises:
            CapacityError: the tokens exceed the capacity.
            ValueError: the shape differs, or the mask has zeros elsewhere.
        """
        self._check(tokens)
        if mask is not None:
            self._pad(np.asarray(mask.numpy() if isinstance(mask, Tensor) else mask))
        count = tokens.shape[1]
        run = self._run if count > 1 or not self.length else self._step(None)
        logits = run(tokens)
        self.length += count
        return logits

    def next(self, tokens: Tensor, select: Select = greedy) -> Tensor:
        """Append ``tokens`` ``int64[batch, 1]``; return the next ones of that shape.

        ``select`` is compiled with the model.

        Raises:
            CapacityError: the tokens exceed the capacity.
            ValueError: the shape differs.
        """
        self._check(tokens)
        if tokens.shape[1] != 1:
            raise ValueError(f"expected one token a row, got {list(tokens.shape)}")
        chosen = self._step(select)(tokens)
        self.length += 1
        return chosen

    def generate(
        self,
        prompt: Tensor,
        count: int,
        *,
        mask: Any = None,
        select: Select = greedy,
        stop: Sequence[int] = (),
    ) -> Iterator[np.ndarray[Any, Any]]:
        """Yield up to ``count`` tokens after ``prompt``, ``int64[batch]`` each.

        Generation stops when every row has had a token of ``stop``. The next token is
        computed while the caller processes the last one, which is in the cache by then.

        Raises:
            CapacityError: the prompt and all tokens but the last exceed the capacity.
        """
        self._check(prompt, more=max(count - 1, 0))
        logits = self(prompt, mask)
        current = ops.unsqueeze(select(logits[:, -1]), 1)
        ended = np.zeros(self.batch, bool)
        for number in range(count):
            following = self.next(current, select) if number + 1 < count else current
            tokens = current.numpy()[:, 0]
            yield tokens
            ended |= np.isin(tokens, list(stop))
            if ended.all():
                return
            current = following

    def reset(self) -> None:
        """Remove all tokens; plans and memory are kept."""
        self.length = 0
        self._state.reset()

    @property
    def notes(self) -> list[str]:
        """Messages about steps that are not compiled or lack a requested feature."""
        return [note for step in self._compiled.values() for note in step.notes]

    @property
    def executables(self) -> list[Any]:
        """The executables of the plans of the steps."""
        return [each for step in self._compiled.values() for each in step.executables]

    def _check(self, tokens: Tensor, more: int = 0) -> None:
        if len(tokens.shape) != 2 or tokens.shape[0] != self.batch:
            raise ValueError(
                f"expected tokens [{self.batch}, length], got {list(tokens.shape)}"
            )
        count = tokens.shape[1] + more
        if self.length + count > self.capacity:
            raise CapacityError(
                f"the cache has room for {self.capacity} tokens: {self.length} are "
                f"there, {count} more were given"
            )

    def _pad(self, mask: np.ndarray[Any, Any]) -> None:
        seen = mask.astype(bool)
        starts = (~seen).sum(1)
        is_left = (np.arange(seen.shape[1]) >= starts[:, None]) == seen
        if self.length or not is_left.all():
            raise ValueError("expected padding on the left of the first tokens alone")
        if starts.any() and not self._appends:
            raise ValueError("expected no padding: the model counts keys by its mask")
        self._state.pad(starts)

    def _step(self, select: Select | None) -> Compiled[[Tensor], Tensor]:
        key = (select, self._state.is_padded)
        if key not in self._compiled:
            self._compiled[key] = Compiled(partial(self._run, select=select))
        return self._compiled[key]

    def _run(self, tokens: Tensor, select: Select | None = None) -> Tensor:
        state = self._state
        past = self.capacity if self.length else 0
        inputs = state.inputs(tokens, past, self._appends)
        results = self._model(**inputs)
        logits: Tensor
        logits, presents = self._binding.split_results(results)
        state.write(presents, past, tokens.shape[1], self._appends)
        if select is None:
            return logits
        return ops.unsqueeze(select(logits[:, -1]), 1)


class _State:
    """The mutable state: keys and values, their length, and the start of each row."""

    def __init__(
        self, model: Module, binding: Binding, batch: int, capacity: int
    ) -> None:
        self._binding = binding
        backend = next(box for _, box in model.boxes()).backend

        def zeros(dtype: Any, *shape: int) -> Buffer:
            return Buffer(from_numpy(np.zeros(shape, dtype), backend))

        self.length, self.starts = zeros(int64, 1), zeros(int64, batch)
        self.is_padded = False
        self.caches = [
            zeros(c.dtype, batch, c.heads, capacity, c.size) for c in binding.caches
        ]

    def reset(self) -> None:
        """Set the length to 0 and remove all padding."""
        self.length.set(ops.zeros_like(self.length.value))
        self.is_padded = False

    def pad(self, starts: np.ndarray[Any, Any]) -> None:
        """Set the first position of each row after its padding."""
        self.is_padded = bool(starts.any())
        self.starts.set(from_numpy(starts.astype(np.int64), self.starts.backend))

    def inputs(self, tokens: Tensor, past: int, appends: bool) -> dict[str, Tensor]:
        """Return the inputs of the model for ``tokens``, by name.

        The first ``past`` entries of the caches are passed, of which the mask shows
        :attr:`length`. If the model ``appends``, new keys follow the past ones.
        """
        binding, count = self._binding, tokens.shape[1]
        inputs = {binding.tokens: tokens}
        batch, length = tokens.shape[0], self.length.value
        if appends:
            at = ops.arange(past + count)
            seen = ops.logical_or(at < length, at >= past)
        else:
            at = ops.arange(max(past, count))
            seen = at < length + count
        positions = ops.arange(count) + length
        if self.is_padded:
            starts = ops.unsqueeze(self.starts.value, 1)
            is_behind = at >= starts
            if past:  # padding is in the past
                is_behind = ops.logical_or(is_behind, at >= past)
            seen = ops.logical_and(seen, is_behind)
            positions = ops.maximum(positions - starts, 0)
        seen = ops.expand(seen, (batch, at.shape[0]))
        inputs[binding.mask.name] = ops.cast(seen, dtype=binding.mask.dtype)
        if binding.positions is not None:
            inputs[binding.positions] = ops.expand(positions, (batch, count))
        for cache, box in zip(binding.caches, self.caches, strict=True):
            value = box.value
            is_whole = past == value.shape[2]
            inputs[cache.name] = value if is_whole else value[:, :, :past]
        return inputs

    def write(
        self, presents: list[Tensor], past: int, count: int, appends: bool
    ) -> None:
        """Write the new keys and values after the existing ones."""
        length = self.length.value
        for box, present in zip(self.caches, presents, strict=True):
            if appends or not past:
                new = present[:, :, past:]
                box.set(update_slice(box.value, new, length))
            else:
                box.set(present)
        self.length.set(length + count)
        if self.is_padded:  # a part of the state: plans do not depend on its value
            self.starts.set(self.starts.value)


def _appends(model: Module, binding: Binding, batch: int) -> bool:
    """Return whether the model appends new keys to the past, determined by a trial run.

    Raises:
        BindingError: the trial fails: logits depend on masked entries.
    """
    errors = []
    for appends in (True, False):
        try:
            error = _trial(model, binding, batch, appends)
        except (ValueError, TypeError, IndexError) as problem:
            errors.append(str(problem).splitlines()[0])
            continue
        half = binding.caches[0].dtype in HALVES
        if error <= (_MOST_HALF if half else _MOST):
            return appends
        errors.append(f"logits differ by {error:.1e}")
    raise BindingError(
        f"{type(model).__name__} gives other results where the past is longer than "
        f"what its mask shows: with new keys behind the past, {errors[0]}; with new "
        f"keys in the past, {errors[1]}"
    )


def _trial(model: Any, binding: Binding, batch: int, appends: bool) -> float:
    """Return the relative error of logits with a padded cache against a growing cache.

    A second step detects entries that were written to another position.
    """
    chunks, logits = ([1, 0], [1], [0]), []
    for pasts, is_grown in (((0, 2, 3), True), ((0, 5, 5), False)):
        state = _State(model, binding, batch, 5)
        backend = state.length.backend
        for row, past in zip(chunks, pasts, strict=True):
            tokens = from_numpy(np.tile(np.array(row), (batch, 1)), backend)
            inputs = state.inputs(tokens, past, appends or is_grown)
            result, presents = binding.split_results(model(**inputs))
            state.write(presents, past, len(row), appends or is_grown)
        logits.append(result.numpy().astype(np.float64))
    difference = np.abs(logits[0] - logits[1]).max()
    return float(difference / (np.abs(logits[0]).max() or 1))
