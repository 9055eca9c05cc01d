"""Layers that the author's code does not call: it reads their weights itself."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import nn
from burn_import import load
from tests.importer.exported_files import call, meta, program, ref, saved

ATTENTION = "L__self__,,Net;L__self__attention,attention,author.Attention"


def weights(extra: str) -> dict[str, np.ndarray[Any, Any]]:
    """Return a matrix at ``attention.qkv.weight``, and a vector beside it."""
    rng = np.random.default_rng(0)
    return {
        "attention.qkv.weight": rng.normal(size=(6, 4)).astype(np.float32),
        f"attention.qkv.{extra}": rng.normal(size=6).astype(np.float32),
    }


def attention(folder: Path, extra: str) -> Any:
    """Return ``exp(linear(x, qkv.weight) + exp(qkv.<extra>))``."""
    wide = meta("float32", [3, 6])
    nodes = [
        call("aten.exp.default", "e", ATTENTION, self=ref(f"p_attention_qkv_{extra}")),
        call(
            "aten.linear.default",
            "y",
            ATTENTION,
            input=ref("x"),
            weight=ref("p_attention_qkv_weight"),
        ),
        call("aten.add.Tensor", "z", ATTENTION, self=ref("y"), other=ref("e")),
        call("aten.exp.default", "w", ATTENTION, self=ref("z")),
    ]
    values = {"e": meta("float32", [6]), **dict.fromkeys(("y", "z", "w"), wide)}
    inputs = {"x": meta("float32", [3, 4])}
    content = program(inputs, weights(extra), nodes, values, ["w"])
    return load(saved(folder, content, weights(extra)))


@pytest.mark.parametrize("extra", ["bias", "gain"])
def test_all_weights_of_a_module_keep_its_path(extra: str, tmp_path: Path) -> None:
    module = attention(tmp_path, extra)
    stored = weights(extra)
    state = module.state_dict()
    assert state.keys() == stored.keys()
    for key, value in stored.items():
        np.testing.assert_array_equal(state[key], value)
    x = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
    matrix, vector = stored.values()
    expected = np.exp(x @ matrix.T + np.exp(vector))
    np.testing.assert_allclose(module(burn.tensor(x)).numpy(), expected, rtol=1e-4)


def test_a_weight_and_its_bias_are_a_layer(tmp_path: Path) -> None:
    assert isinstance(attention(tmp_path, "bias").attention.qkv, nn.Linear)


def test_other_tensors_beside_a_weight_make_no_layer(tmp_path: Path) -> None:
    assert not isinstance(attention(tmp_path, "gain").attention.qkv, nn.Linear)
