"""Programs of a training step: their outputs beside the user's."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from burn_ir import InvalidModel
from tests.importer.exported_files import (
    LEAF,
    call,
    meta,
    program,
    ref,
    saved,
    with_trees,
)


def step(**gradient: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the program of ``sum(x * w)`` with the gradients of both, and ``w``."""
    weights = {"scale.w": np.random.default_rng(5).standard_normal(4, np.float32)}
    rows = meta("float32", ["n", 4])
    nodes = [
        call("aten.mul.Tensor", "y", self=ref("x"), other=ref("p_scale_w")),
        call("aten.sum.default", "loss", self=ref("y")),
        call("aten.expand_as.default", "dx", self=ref("p_scale_w"), other=ref("x")),
        call("aten.sum.dim_IntList", "dw", self=ref("x"), dim={"as_ints": [0]}),
    ]
    values = {"y": rows, "loss": meta("float32", []), "dx": rows}
    values["dw"] = meta("float32", [4])
    content = program({"x": rows}, weights, nodes, values, ["loss", "dw", "dx"])
    of_weight = {"arg": {"name": "dw"}, "parameter_name": "scale.w", **gradient}
    content["graph_module"]["signature"]["output_specs"] = [
        {"loss_output": {"arg": {"name": "loss"}}},
        {"gradient_to_parameter": of_weight},
        {
            "gradient_to_user_input": {
                "arg": {"name": "dx"},
                "user_input_name": "x",
            }
        },
    ]
    return with_trees(content, out_spec=LEAF), weights


def test_gradients_are_returned_by_the_names_of_what_they_are_of(
    tmp_path: Path,
) -> None:
    content, weights = step()
    model: Any = load(saved(tmp_path, content, weights))
    x = np.random.default_rng(6).standard_normal((3, 4), np.float32)
    actual = model(burn.tensor(x))
    assert actual._fields[1:] == ("scale_w_grad", "x_grad")
    w = weights["scale.w"]
    expected = ((x * w).sum(), x.sum(0), np.broadcast_to(w, (3, 4)))
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-5, atol=1e-6)


def test_a_gradient_of_nothing_is_refused(tmp_path: Path) -> None:
    content, weights = step(parameter_name=3)
    with pytest.raises(InvalidModel, match="'parameter_name': expected str"):
        load(saved(tmp_path, content, weights))
