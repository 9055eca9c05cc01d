"""Sequences of different lengths in recurrent layers, by gates that keep the state.

The library's layers have no lengths. An additional input is 1 after the end of a
sequence, with weights so large that the gates saturate to exactly 0 and 1: the cell of
an LSTM and the state of a GRU are unchanged. Outputs after the ends are set to 0.
"""

from functools import partial
from typing import Any

import numpy as np

from burn.backend.cpu.onednn.binding.capture import Notes, do
from burn.backend.cpu.onednn.binding.memory import Array
from burn.backend.cpu.onednn.kernels.rnn.recurrent_primitives import (
    GRU,
    LSTM,
    RESET_AFTER,
    Cell,
)
from burn.ops.bounds import MOST
from burn.ops.recurrent_gradients import LayerOperands

#: Larger than any value that plans add to gates.
_HUGE = 100 * MOST
#: The addend of each of ONNX's gates after the end of a sequence.
_BEHIND: dict[Cell, tuple[float, ...]] = {
    LSTM: (-_HUGE, 0.0, _HUGE, 0.0),
    GRU: (_HUGE, 0.0, 0.0),
    RESET_AFTER: (_HUGE, 0.0, 0.0),
}


class Ends:
    """The steps after the ends of sequences of ``lengths``, in every run of a plan.

    As elsewhere, a layer that goes from the end as well raises IndexError where a
    length is more than ``time``.
    """

    def __init__(
        self, notes: Notes, time: int, lengths: Array, reverse: tuple[bool, ...]
    ) -> None:
        batch = len(lengths)
        self._lengths = lengths
        self._steps = np.arange(time)[:, None]
        self._all = np.arange(batch)
        self.behind = notes.empty((time, batch), np.dtype(np.bool_))
        self.within = notes.empty((time, batch), np.dtype(np.bool_))
        if any(reverse):
            do(self._check)
        do(partial(np.greater_equal, self._steps, lengths, out=self.behind))
        do(partial(np.less, self._steps, lengths, out=self.within))

    def _check(self) -> None:
        most = len(self._steps)
        if any(length > most for length in self._lengths.tolist()):
            raise IndexError(f"expected lengths up to {most}, got {self._lengths}")

    def mark(self, x: Array, marked: Array) -> None:
        """Copy ``x`` with zeros after the ends, and ones in an additional input."""
        same, further = marked[..., :-1], marked[..., -1]
        do(partial(same.fill, 0.0))
        do(partial(np.copyto, same, x, where=self.within[..., None]))
        do(partial(np.copyto, further, self.behind))

    def clear(self, every: Array) -> None:
        """Set outputs [time, directions, batch, hidden] after the ends to 0."""
        do(partial(np.copyto, every, 0.0, where=self.behind[:, None, :, None]))

    def last(self, every: Array, first: Array | None, last: Array) -> None:
        """Copy the last outputs [time, batch, hidden] of nonempty sequences.

        The others keep their ``first`` state.
        """
        last[...] = 0.0 if first is None else first
        index = np.clip(self._lengths - 1, 0, len(every) - 1)
        np.copyto(last, every[index, self._all], where=self.within[0, :, None])


def mark_ends(
    cell: Cell,
    layer: LayerOperands,
    lengths: Array,
    reverse: tuple[bool, ...],
    notes: Notes,
) -> tuple[LayerOperands, Ends] | None:
    """Return the operands with the additional input; None if unsupported.

    Plans cache the weights, which must be constant.
    """
    time, batch, inputs = layer.x.shape
    weights = [a for a in (layer.w, layer.r, layer.b) if a is not None]
    if (
        cell not in _BEHIND
        or lengths.shape != (batch,)
        or lengths.dtype.kind not in "iu"
    ):
        return None
    if not time or not all(map(notes.is_constant, weights)):
        return None
    if (
        cell is LSTM
        and any(reverse)
        and not all(
            state is None or (notes.is_constant(state) and not state.any())
            for state in layer.states
        )
    ):
        return None  # the output before the first step is not that of a cell of zeros
    rows = layer.w.shape[1] // len(_BEHIND[cell])
    column = np.repeat(np.array(_BEHIND[cell], np.float32), rows)
    columns = np.broadcast_to(column[:, None], (*layer.w.shape[:2], 1))
    wide = np.concatenate([layer.w, columns], 2)
    notes.keep(wide, constant=True)
    ends = Ends(notes, time, lengths, reverse)
    x = notes.empty((time, batch, inputs + 1), layer.x.dtype)
    ends.mark(layer.x, x)
    return layer._replace(x=x, w=wide), ends


def finish(
    cell: Cell,
    layer: LayerOperands,
    results: tuple[Array, ...],
    reverse: tuple[bool, ...],
    ends: Ends,
) -> tuple[Array, ...]:
    """Return the results of the layer for sequences of their lengths."""
    every, last = results[:2]
    if cell is LSTM:  # whose output gate does not keep it
        for index, backwards in enumerate(reverse):
            if not backwards:
                state: Any = layer.states[0]
                first = None if state is None else state[index]
                do(partial(ends.last, every[:, index], first, last[index]))
    ends.clear(every)
    return results
