"""Metrics of texts: error rates of words and characters, by edit distance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from burn.train.metrics.metric import Array, Batch, Mean

#: The text of token ids int64[L].
Decode = Callable[[Array], str]


class WordErrorRate(Mean):
    """Word insertions, deletions and replacements, for each word of the targets.

    The step returns ``logits`` [N, C, L] and ``targets`` [N, L], as
    :class:`~burn.train.Classified`. ``decode`` makes the text of ids: of the highest
    scores int64[L], and of the targets, unless ``decode_targets`` is given. It drops
    padding, and for CTC repeated and blank ids.
    """

    higher_is_better: ClassVar[bool | None] = False

    def __init__(
        self, decode: Decode, decode_targets: Decode | None = None, name: str = "wer"
    ) -> None:
        super().__init__(name)
        self.decode, self.decode_targets = decode, decode_targets or decode

    def units(self, text: str) -> Sequence[str]:
        """What is counted in a text."""
        return text.split()

    def update(self, output: Any, batch: Batch) -> float:
        logits, targets = (
            getattr(output, name, None) for name in ("logits", "targets")
        )
        if logits is None or targets is None or logits.ndim != 3:
            raise TypeError(
                f"{self.name}: expected logits [N, C, L] and targets [N, L], "
                f"got {type(output).__name__}"
            )
        edits = count = 0
        pairs = zip(logits.numpy().argmax(1), targets.numpy(), strict=True)
        for said, wanted in pairs:
            reference = self.units(self.decode_targets(wanted))
            edits += edit_distance(self.units(self.decode(said)), reference)
            count += len(reference)
        return self.add(edits, count)


class CharErrorRate(WordErrorRate):
    """The same for characters."""

    def __init__(
        self, decode: Decode, decode_targets: Decode | None = None, name: str = "cer"
    ) -> None:
        super().__init__(decode, decode_targets, name)

    def units(self, text: str) -> Sequence[str]:
        return text


def edit_distance(a: Sequence[str], b: Sequence[str]) -> int:
    """The least number of insertions, deletions and replacements (Levenshtein)."""
    numbers: dict[str, int] = {}
    first, second = (
        np.array([numbers.setdefault(x, len(numbers)) for x in each], np.int64)
        for each in (a, b)
    )
    steps = np.arange(len(second) + 1)
    row = steps
    for unit in first:
        # Deletions and replacements from the row above; then insertions, which are
        # the least of what is to the left plus the distance to it.
        best = row + 1
        best[1:] = np.minimum(best[1:], row[:-1] + (second != unit))
        row = np.minimum.accumulate(best - steps) + steps
    return int(row[-1])
