"""Decomposed operators become the source that an author would write."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np

import burn
from burn_import import load
from burn_ir.types import Array
from tests.importer.exported_files import call, meta, program, ref, saved

NUMBERS = {int: "as_int", float: "as_float", bool: "as_bool", str: "as_string"}


def value(x: Any) -> Any:
    """Return an argument: strings are names of values, else numbers and lists."""
    if isinstance(x, str) and not x.startswith("-"):
        return ref(x)
    if isinstance(x, list):
        return {"as_ints": x}
    if isinstance(x, str):  # JSON has no literal for these
        return {"as_float": x}
    return {NUMBERS[type(x)]: x}


def written(
    folder: Path, inputs: Any, steps: list[tuple[str, str, Any, dict[str, Any]]]
) -> tuple[Any, str]:
    """Return the module of a program, and its source.

    A step is an operator, the name of its result, its type and its arguments.
    """
    nodes = [
        call(f"aten.{op}", name, **{key: value(x) for key, x in args.items()})
        for op, name, _, args in steps
    ]
    types = {name: kind for _, name, kind, _ in steps}
    content = program(inputs, {}, nodes, types, [steps[-1][1]])
    model = load(saved(folder, content, {}))
    module = inspect.getmodule(type(model))
    assert module is not None
    return model, inspect.getsource(module)


def softmax(x: Array) -> Array:
    exps = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(exps / exps.sum(-1, keepdims=True))


def test_attention_is_found_with_its_guard(tmp_path: Path) -> None:
    rows, square = meta("float32", ["n", 2, 5, 4]), meta("float32", ["n", 2, 5, 5])
    turned, edge = meta("float32", ["n", 2, 4, 5]), meta("bool", ["n", 2, 5, 1])
    mask = meta("bool", ["n", 2, 5, 5])
    steps: list[tuple[str, str, Any, dict[str, Any]]] = [
        ("mul.Scalar", "q", rows, {"self": "query", "other": 0.7071067811865476}),
        ("permute.default", "kt", turned, {"self": "key", "dims": [0, 1, 3, 2]}),
        ("mul.Scalar", "k", turned, {"self": "kt", "other": 0.7071067811865476}),
        ("matmul.default", "scores", square, {"self": "q", "other": "k"}),
        ("_softmax.default", "soft", square, {"self": "scores", "dim": -1}),
        ("eq.Scalar", "eq", mask, {"self": "scores", "other": "-Infinity"}),
        ("logical_not.default", "seen", mask, {"self": "eq"}),
        ("any.dim", "some", edge, {"self": "seen", "dim": -1, "keepdim": True}),
        ("logical_not.default", "none", edge, {"self": "some"}),
        ("full_like.default", "zeros", square, {"self": "soft", "fill_value": 0}),
        (
            "where.self",
            "w",
            square,
            {"condition": "none", "self": "zeros", "other": "soft"},
        ),
        ("matmul.default", "out", rows, {"self": "w", "other": "value"}),
    ]
    inputs = {name: rows for name in ("query", "key", "value")}
    model, source = written(tmp_path, inputs, steps)
    assert "return ops.attention(query, key, value)" in source
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(3, 2, 5, 4)).astype(np.float32) for _ in range(3))
    expected = softmax(q @ k.transpose(0, 1, 3, 2) / 2) @ v
    actual = model(*map(burn.tensor, (q, k, v))).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_hard_swish_is_found_between_two_bounds(tmp_path: Path) -> None:
    x = meta("float32", ["n", 3])
    steps: list[tuple[str, str, Any, dict[str, Any]]] = [
        ("add.Tensor", "more", x, {"self": "x", "other": 3}),
        ("clamp_min.default", "low", x, {"self": "more", "min": 0}),
        ("clamp_max.default", "high", x, {"self": "low", "max": 6}),
        ("mul.Tensor", "product", x, {"self": "x", "other": "high"}),
        ("div.Tensor", "out", x, {"self": "product", "other": 6}),
    ]
    _, source = written(tmp_path, {"x": x}, steps)
    assert "return ops.hard_swish(x)" in source


def test_functions_are_called_by_their_names(tmp_path: Path) -> None:
    x, line = meta("float32", ["n", 3, 4]), meta("float32", ["n", 3])
    steps: list[tuple[str, str, Any, dict[str, Any]]] = [
        ("gelu.default", "y", x, {"self": "x"}),
        ("flip.default", "z", x, {"self": "y", "dims": [1]}),
        ("floor_divide.default", "w", x, {"self": "z", "other": 2}),
        ("var.correction", "out", line, {"self": "w", "dim": [-1]}),
    ]
    _, source = written(tmp_path, {"x": x}, steps)
    assert "w = ops.flip(ops.gelu(x), axis=1) // 2.0\n" in source
    assert "return ops.var(w, axis=-1)" in source


def test_windows_along_an_axis(tmp_path: Path) -> None:
    inputs = {"x": meta("float32", [2, 8, 3])}
    kind = meta("float32", [2, 3, 3, 4])
    arguments = {"self": "x", "dimension": 1, "size": 4, "step": 2}
    model, source = written(
        tmp_path, inputs, [("unfold.default", "y", kind, arguments)]
    )
    assert "ops.unfold_axis(x, size=4, axis=1, step=2)" in source
    x = np.arange(48, dtype=np.float32).reshape(2, 8, 3)
    expected = np.lib.stride_tricks.sliding_window_view(x, 4, 1)[:, ::2]
    np.testing.assert_array_equal(np.asarray(model(burn.tensor(x)).numpy()), expected)
