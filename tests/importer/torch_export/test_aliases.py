"""In-place changes of a result that is, or is not, an alias of the operand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from burn_ir.types import Array
from tests.importer.exported_files import CODES, call, meta, program, ref, saved

FLOAT32 = {"as_scalar_type": CODES["float32"]}
ALIASES: dict[str, Any] = {
    "contiguous.default": {"self": ref("y")},
    "to.dtype": {"self": ref("y"), "dtype": FLOAT32},
    "positive.default": {"self": ref("y")},
    "dropout.default": {
        "input": ref("y"),
        "p": {"as_float": 0.5},
        "train": {"as_bool": False},
    },
}
COPIES: dict[str, Any] = {
    "clone.default": {"self": ref("y")},
    "to.dtype": {"self": ref("y"), "dtype": FLOAT32, "copy": {"as_bool": True}},
}


def results(folder: Path, target: str, args: Any, x: Array) -> list[Array]:
    """Return y = exp(x) and v = target(y) after ``v.mul_(3)``."""
    nodes = [
        call("aten.exp.default", "y", self=ref("x")),
        call(f"aten.{target}", "v", **args),
        call("aten.mul_.Scalar", "w", self=ref("v"), other={"as_int": 3}),
    ]
    kind = meta("float32", [3, 4])
    values = {name: kind for name in ("y", "v", "w")}
    content = program({"x": kind}, {}, nodes, values, ["y", "w"])
    model: Any = load(saved(folder, content, {}))
    return [np.asarray(result.numpy()) for result in model(burn.tensor(x))]


@pytest.mark.parametrize("target", ALIASES)
def test_a_change_of_an_alias_is_seen_in_the_operand(
    target: str, tmp_path: Path
) -> None:
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    y, w = results(tmp_path, target, ALIASES[target], x)
    np.testing.assert_allclose(y, 3 * np.exp(x), rtol=1e-6)
    np.testing.assert_allclose(w, 3 * np.exp(x), rtol=1e-6)


@pytest.mark.parametrize("target", COPIES)
def test_a_change_of_a_copy_is_not(target: str, tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    y, w = results(tmp_path, target, COPIES[target], x)
    np.testing.assert_allclose(y, np.exp(x), rtol=1e-6)
    np.testing.assert_allclose(w, 3 * np.exp(x), rtol=1e-6)


def test_a_change_of_a_diagonal_is_seen_in_the_matrix(tmp_path: Path) -> None:
    nodes = [
        call("aten.exp.default", "y", self=ref("x")),
        call(
            "aten.diagonal.default",
            "v",
            self=ref("y"),
            offset={"as_int": 1},
            dim1={"as_int": 1},
            dim2={"as_int": 2},
        ),
        call("aten.mul_.Scalar", "w", self=ref("v"), other={"as_int": 3}),
    ]
    kind = meta("float32", [2, 3, 4])
    values = {"y": kind, "v": meta("float32", [2, 3]), "w": meta("float32", [2, 3])}
    content = program({"x": kind}, {}, nodes, values, ["y"])
    model: Any = load(saved(tmp_path, content, {}))
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    expected = np.exp(x)
    for index in range(3):
        expected[:, index, index + 1] *= 3
    actual = model(burn.tensor(x)).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


@pytest.mark.parametrize("changed", ["y", "w"])
def test_a_view_shows_what_changed_its_source(changed: str, tmp_path: Path) -> None:
    """``w`` is a row of ``v``, the transpose of ``y``; all are read at the end."""
    one = {"as_int": 1}
    nodes = [
        call("aten.exp.default", "y", self=ref("x")),
        call("aten.t.default", "v", self=ref("y")),
        call("aten.select.int", "w", self=ref("v"), dim={"as_int": 0}, index=one),
        call("aten.select.int", "u", self=ref("y"), dim={"as_int": 0}, index=one),
        call("aten.mul_.Scalar", "c", self=ref(changed), other={"as_int": 3}),
        *(
            call("aten.neg.default", f"{name}_out", self=ref(name))
            for name in ("y", "v", "w", "u")
        ),
    ]
    shapes = {"y": [3, 4], "v": [4, 3], "w": [3], "u": [4]}
    values = {name: meta("float32", shape) for name, shape in shapes.items()}
    values |= {f"{name}_out": kind for name, kind in values.items()}
    values["c"] = values[changed]
    outputs = [f"{name}_out" for name in shapes]
    content = program({"x": values["y"]}, {}, nodes, values, outputs)
    model: Any = load(saved(tmp_path, content, {}))
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    y = np.exp(x)
    if changed == "y":
        y *= 3
    else:
        y[:, 1] *= 3
    results = model(burn.tensor(x))
    for actual, expected in zip(results, (y, y.T, y[:, 1], y[1]), strict=True):
        np.testing.assert_allclose(actual.numpy(), -expected, rtol=1e-6)
