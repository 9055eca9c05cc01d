"""Word and character error rates of decoded sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from burn.train.metrics.classification import INPUTS
from burn.train.metrics.metric import Array, Batch, Mean

#: Converts token ids int64[L] to text.
Decode = Callable[[Array], str]


class WordErrorRate(Mean):
    """Word error rate: edit distance divided by the number of words in the targets.

    The step returns ``logits`` [N, C, L] and ``targets`` [N, L], as
    :class:`~burn.train.Classified`.

    Args:
        decode: converts the argmax of the logits, int64[L], to text. It removes
            padding, and with CTC repeated and blank ids.
        decode_targets: does the same for targets; ``decode`` by default.
        name: the name of the metric.
    """

    higher_is_better: ClassVar[bool | None] = False
    inputs: ClassVar[tuple[str, ...]] = INPUTS

    def __init__(
        self, decode: Decode, decode_targets: Decode | None = None, name: str = "wer"
    ) -> None:
        super().__init__(name)
        self.decode, self.decode_targets = decode, decode_targets or decode

    def units(self, text: str) -> Sequence[str]:
        """Return the tokens that the edit distance compares."""
        return text.split()

    def update(self, output: Any, batch: Batch) -> float:
        logits, targets = self.inputs_of(output)
        if logits.ndim != 3:
            raise ValueError(
                f"{self.name}: expected logits [N, C, L], got {list(logits.shape)}"
            )
        edits = count = 0
        pairs = zip(logits.numpy().argmax(1), targets.numpy(), strict=True)
        for predicted_ids, target_ids in pairs:
            reference = self.units(self.decode_targets(target_ids))
            hypothesis = self.units(self.decode(predicted_ids))
            edits += edit_distance(hypothesis, reference)
            count += len(reference)
        return self.add(edits, count)


class CharErrorRate(WordErrorRate):
    """Character error rate: as :class:`WordErrorRate`, on characters."""

    def __init__(
        self, decode: Decode, decode_targets: Decode | None = None, name: str = "cer"
    ) -> None:
        super().__init__(decode, decode_targets, name)

    def units(self, text: str) -> Sequence[str]:
        return text


def edit_distance(a: Sequence[str], b: Sequence[str]) -> int:
    """Return the Levenshtein distance of two sequences."""
    numbers: dict[str, int] = {}
    first, second = (
        np.array([numbers.setdefault(x, len(numbers)) for x in each], np.int64)
        for each in (a, b)
    )
    steps = np.arange(len(second) + 1)
    row = steps
    for unit in first:
        # Deletions and substitutions come from the row above. An insertion adds 1 to
        # the cell on the left, so subtracting the column makes it a running minimum.
        best = row + 1
        best[1:] = np.minimum(best[1:], row[:-1] + (second != unit))
        row = np.minimum.accumulate(best - steps) + steps
    return int(row[-1])
