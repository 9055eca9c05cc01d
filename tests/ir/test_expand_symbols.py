"""``Expand`` to another tensor's dimensions, which are equal, larger, or 1."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from tests.importer.script_files import example, net
from tests.modules import Array

BATCH, WINDOWS, HEADS, ROWS, SIZE = 2, 3, 7, 5, 4
ATTENTION = "return torch.scaled_dot_product_attention(x, x, x, mask)"
#: Leading dimensions of masks, each 1 or that of the queries on the same axis.
LEADS = (
    *((), (1,), (HEADS,), (1, 1), (1, HEADS), (WINDOWS, 1), (WINDOWS, HEADS)),
    *((1, 1, HEADS), (1, WINDOWS, HEADS), (BATCH, 1, HEADS)),
    *((1, WINDOWS, 1), (BATCH, WINDOWS, HEADS)),
)


def attended(x: Array, mask: Array) -> Array:
    """Return the self-attention of ``x``, by its definition."""
    scores = x @ np.swapaxes(x, -1, -2) / np.sqrt(x.shape[-1]) + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    result: Array = weights / weights.sum(-1, keepdims=True) @ x
    return result


@pytest.mark.parametrize("lead", LEADS, ids=str)
def test_a_mask_broadcasts_to_the_batches_of_attention(
    lead: tuple[int, ...], tmp_path: Path
) -> None:
    shape = (BATCH, WINDOWS, HEADS, ROWS, SIZE)
    inputs = example("Float", *shape), example("Float", *lead, ROWS, ROWS)
    code = net(ATTENTION, *inputs, parameters="x: Tensor,\n    mask: Tensor")
    model: Any = load(code.saved(tmp_path))
    compiled = burn.compile(model)
    rng = np.random.default_rng(0)
    for batch in (BATCH, 4):
        # The mask of each sample, where it has one, goes with the number of samples.
        first = (batch, *lead[1:]) if len(lead) == 3 and lead[0] == BATCH else lead
        x = rng.normal(size=(batch, *shape[1:])).astype(np.float32)
        mask = rng.normal(size=(*first, ROWS, ROWS)).astype(np.float32)
        for call in (model, compiled):
            got = call(burn.tensor(x), burn.tensor(mask)).numpy()
            np.testing.assert_allclose(got, attended(x, mask), rtol=1e-4, atol=1e-6)
