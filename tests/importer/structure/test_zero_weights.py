"""Parameters that are zero, as before training, and read by code and not by a layer.

Their keys stay in the record, so that trained numbers can be loaded into them.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from tests.importer.structure.scoped_net import ScopedNet, check_import
from tests.modules import Array

HEADS, LENGTH, WIDTH = 2, 3, 4


def zeros(net: ScopedNet, key: str, *shape: int) -> str:
    return net.stored(key, np.zeros(shape, np.float32))


def bias_of_scores(net: ScopedNet) -> str:
    """Append attention with a bias that is gathered by relative positions."""
    query, key, value = (
        net.run("Transpose", "attn", net.input(name, 1, LENGTH, HEADS, WIDTH), perm=p)
        for name, p in (
            ("q", (0, 2, 1, 3)),
            ("k", (0, 2, 3, 1)),
            ("v", (0, 2, 1, 3)),
        )
    )
    places = np.abs(np.subtract.outer(np.arange(LENGTH), np.arange(LENGTH)))
    table = zeros(net, "attn.attention_biases", HEADS, LENGTH)
    bias = net.run("Gather", "attn", table, net.stored("places", places), axis=1)
    scale = net.stored("scale", np.float32(WIDTH**-0.5))
    scores = net.run("Mul", "attn", net.run("MatMul", "attn", query, key), scale)
    scores = net.run("Add", "attn", scores, bias)
    weights = net.run("Softmax", "attn", scores, axis=-1)
    return net.run("MatMul", "attn", weights, value)


def gathered_addend(net: ScopedNet) -> str:
    """Append the addition of rows of a table."""
    x = net.linear("up", net.input("x", 2, WIDTH), WIDTH, WIDTH)
    rows = net.stored("rows", np.array([1, 0]))
    return net.run("Add", "", x, net.run("Gather", "", zeros(net, "table", 3, 4), rows))


def expanded_factor(net: ScopedNet) -> str:
    """Append the product with ``1 + gamma`` of a stored ``gamma``."""
    x = net.linear("up", net.input("x", 2, WIDTH), WIDTH, WIDTH)
    one = net.stored("one", np.float32(1))
    gamma = net.run("Add", "", zeros(net, "norm.gamma", WIDTH), one)
    return net.run("Mul", "", x, gamma)


def first_state(net: ScopedNet) -> str:
    """Append an LSTM that begins with a stored state."""
    x = net.input("x", 5, 2, WIDTH)
    arrays = [
        net.weight("lstm.weight_ih_l0", 1, 4 * WIDTH, WIDTH),
        net.weight("lstm.weight_hh_l0", 1, 4 * WIDTH, WIDTH),
        net.weight("lstm.bias", 1, 8 * WIDTH),
    ]
    states = [zeros(net, f"state.{name}0", 1, 2, WIDTH) for name in "hc"]
    return net.run("LSTM", "", x, *arrays, "", *states, hidden_size=WIDTH)


@pytest.mark.parametrize(
    "build", [bias_of_scores, gathered_addend, expanded_factor, first_state]
)
def test_zero_weights(tmp_path: Path, build: Callable[[ScopedNet], str]) -> None:
    net = ScopedNet()
    model = net.model(build(net))
    keys = set(net.weights) - {"places", "rows", "scale", "one"}
    feeds = net.feeds()
    actual = check_import(tmp_path, model, feeds, flat=False)
    zero = {key for key in keys if not net.weights[key].any()}
    assert zero <= actual.keys
    before = result(actual.module, feeds)
    for key in zero:
        state = dict(actual.module.state_dict())
        state[key] = burn.tensor(
            net.rng.normal(size=net.weights[key].shape).astype(np.float32)
        )
        actual.module.load_state_dict(state)
        assert np.abs(result(actual.module, feeds) - before).max() > 1e-3, key


def result(module: Any, feeds: dict[str, Array]) -> Array:
    values = module(*map(burn.tensor, feeds.values()))
    array: Array = (values[0] if isinstance(values, tuple) else values).numpy()
    return array
