"""Recurrent layers of sequences of different lengths, in hand-written traces."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from burn_import.frontends.torchscript import read
from burn_ir import UnsupportedModel
from tests.importer.script_files import example, net, weight
from tests.modules import Array

LENGTHS = np.array([3, 5, 1], np.int64)
X = np.random.default_rng(1).normal(size=(3, 6, 2)).astype(np.float32)
FORWARD = """
w = self.w
u = self.u
b = self.b
c = self.c
data, sizes, = torch._pack_padded_sequence(x, n, True)
first = torch.zeros([1, int(torch.select(sizes, 0, 0)), 4])
out, last, = torch.rnn_tanh(data, sizes, first, [w, u, b, c], True, 1, 0., False, False)
{changed}
y, lengths, = torch._pad_packed_sequence(out, sizes, True, 0.5, {total})
return (y, lengths, last)
"""


def packing(changed: str = "", total: str = "-1") -> Any:
    """Return the archive of a layer between packing and padding, and its weights."""
    shapes = {"w": (4, 2), "u": (4, 4), "b": (4,), "c": (4,)}
    results = {k: weight(k, *s, seed=i) for i, (k, s) in enumerate(shapes.items())}
    text = FORWARD.format(changed=changed, total=total)
    inputs = example("Float", *X.shape), example("Long", 3)
    names = "x: Tensor,\n    n: Tensor"
    attributes = {key: pair[1] for key, pair in results.items()}
    script = net(text, *inputs, parameters=names, **attributes)
    return script, [array for array, _ in results.values()]


def expected(weights: list[Array], lengths: Array) -> tuple[Array, Array]:
    """Return the states of each sequence, padded with 0.5, and the last ones."""
    w, u, b, c = weights
    states, last = np.full((3, 9, 4), 0.5, np.float32), np.zeros((1, 3, 4), np.float32)
    for row, count in enumerate(lengths):
        h = np.zeros(4, np.float32)
        for step in range(count):
            h = np.tanh(X[row, step] @ w.T + b + h @ u.T + c)
            states[row, step] = h
        last[0, row] = h
    return states, last


@pytest.mark.parametrize("total", ["-1", "6", "9", "int(torch.size(x, 1))"])
def test_steps_behind_the_end_of_a_sequence_are_not_computed(
    total: str, tmp_path: Path
) -> None:
    script, weights = packing(total=total)
    model: Any = load(script.saved(tmp_path))
    for lengths in (LENGTHS, np.array([2, 2, 4], np.int64)):
        y, counts, last = model(burn.tensor(X), burn.tensor(lengths))
        states, final = expected(weights, lengths)
        end = {"-1": lengths.max(), "9": 9}.get(total, 6)
        np.testing.assert_allclose(y.numpy(), states[:, :end], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(last.numpy(), final, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(counts.numpy(), lengths)


def test_packed_data_are_the_steps_by_time(tmp_path: Path) -> None:
    forward = """
data, sizes, = torch._pack_padded_sequence(x, n, True)
return (data, sizes)
"""
    inputs = example("Float", *X.shape), example("Long", 3)
    script = net(forward, *inputs, parameters="x: Tensor,\n    n: Tensor")
    model: Any = load(script.saved(tmp_path))
    data, sizes = model(burn.tensor(X), burn.tensor(np.array([5, 3, 1], np.int64)))
    np.testing.assert_array_equal(sizes.numpy(), [3, 2, 2, 1, 1])
    rows = [X[i, t] for t, n in enumerate([3, 2, 2, 1, 1]) for i in range(n)]
    np.testing.assert_array_equal(data.numpy(), rows)


def test_packed_data_that_were_changed_are_refused(tmp_path: Path) -> None:
    path = packing("out = torch.relu(out)")[0].saved(tmp_path)
    with pytest.raises(UnsupportedModel, match="packed sequences as they were packed"):
        read(path)


def test_weights_of_packed_sequences_have_gradients(tmp_path: Path) -> None:
    """They are stored under their keys, not in ONNX's order."""
    script, weights = packing(total="6")
    code = script.code["__torch__.py"].replace(
        "__parameters__ = []", '__parameters__ = ["w", "u", "b", "c", ]'
    )
    script.code["__torch__.py"] = code
    model: Any = load(script.saved(tmp_path))
    assert sorted(model.state_dict()) == ["b", "c", "u", "w"]
    model.to(burn.Autodiff(burn.Cpu()))
    y, _, last = model(burn.tensor(X), burn.tensor(LENGTHS))
    gradients = (burn.ops.sum(y) + burn.ops.sum(last)).backward()
    step = 1e-2
    for number, key in enumerate("wub"):
        direction = np.random.default_rng(number).normal(size=weights[number].shape)
        ends = []
        for sign in (1, -1):
            moved = [array.astype(np.float64) for array in weights]
            moved[number] = moved[number] + sign * step * direction
            ends.append(
                sum(part.sum(dtype=np.float64) for part in expected(moved, LENGTHS))
            )
        slope = (ends[0] - ends[1]) / (2 * step)
        actual = gradients[dict(model.boxes())[key]].numpy()
        np.testing.assert_allclose((actual * direction).sum(), slope, rtol=1e-2)
