"""Symbolic extents of programs: expressions, and names of symbols."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from burn_import.frontends.torch_export.symbolic_extents import Symbols, named_symbols
from burn_import.options import Options
from burn_import.pipeline import import_model
from burn_ir import InvalidModel
from tests.importer.exported_files import call, expression, meta, program, ref, saved
from tests.pace import within

S = "Symbol('s1', positive=True, integer=True)"
T = "Symbol('s2', positive=True, integer=True)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (S, "s1"),
        ("s1", "s1"),
        ("Integer(6)", "6"),
        ("6", "6"),
        (f"Mul(Integer(2), {S})", "2 * s1"),
        (f"Add({S}, Integer(-1), {T})", "s1 + s2 - 1"),
        (f"FloorDiv(Add({S}, Integer(1)), Integer(2))", "(s1 + 1) // 2"),
        (f"Mod({S}, Integer(3))", "s1 - 3 * (s1 // 3)"),
    ],
)
def test_expressions_are_extents(text: str, expected: str) -> None:
    actual = Symbols().extent(expression(text))
    assert str(actual) == expected


@pytest.mark.parametrize(
    "text",
    [
        f"Max({S}, Integer(3))",
        f"Mul({S}, Foo({T}))",
        "1 + 2",
        f"FloorDiv(Integer(32), FloorDiv({T}, Integer(7)))",
        f"Mod(Integer(32), {T})",
    ],
)
def test_other_functions_are_any_extent(text: str) -> None:
    symbols = Symbols()
    assert str(symbols.extent(expression(text))) == "extent"
    assert str(symbols.extent(expression("Min(2, 3)"))) == "extent2"


def test_an_expression_is_one_extent_wherever_it_stands() -> None:
    symbols = Symbols()
    text = f"Max({S}, Integer(3))"
    assert symbols.extent(expression(text)) == symbols.extent(expression(text))


@pytest.mark.parametrize(
    "size",
    [
        None,
        {},
        {"as_int": -1},
        {"as_int": 2**63},
        {"as_int": True},
        {"as_int": "7"},
        {"as_expr": {}},
        {"as_expr": 3},
        *map(
            expression,
            [
                "",
                "(",
                "1if 2else 3",
                "'\\\\d'",
                "__import__('os').system('true')",
                "s1; s2",
                "f'{s1}'",
                "FloorDiv(Integer(1), Integer(0))",
                f"FloorDiv({S}, Integer(-1))",
                "Integer()",
                "FloorDiv()",
                "(" * 900,
                "Add(" * 450 + ")" * 450,
                "-" * 1900 + "1",
                "s" * 3000,
                "Mul(" + ", ".join(f"Add(a{i}, b{i})" for i in range(60)) + ")",
            ],
        ),
    ],
)
def test_what_is_no_extent_is_refused(size: Any) -> None:
    with within(1), pytest.raises(InvalidModel):
        Symbols().extent(size)


def test_names_of_symbols_are_names() -> None:
    symbols = Symbols()
    actual = [
        symbols.extent(expression(f"Symbol('{n}')")) for n in ("a.b", "a_b", "if", "7")
    ]
    assert [str(one) for one in actual] == ["a_b", "a_b2", "if_", "extent_7"]


def test_symbols_are_called_after_the_axes_of_inputs() -> None:
    symbols = Symbols()
    inputs = {
        "half": [expression(f"Mul(Integer(2), {T})"), {"as_int": 3}],
        "ids": [expression(S), expression("s3")],
        "mask": [expression("s4"), expression("s3")],
        "deep": [{"as_int": 1}] * 5 + [expression("s5")],
    }
    named_symbols(symbols, inputs)
    assert symbols.names == {
        "s1": "batch",
        "s3": "length",
        "s4": "batch2",
        "s5": "extent5",
        "s2": "batch_unit",
    }


def test_an_input_of_a_multiple_of_a_symbol(tmp_path: Path) -> None:
    sizes: list[Any] = [expression(f"Mul(Integer(2), {S})"), {"as_int": 3}]
    x = {**meta("float32", [4, 3]), "sizes": sizes}
    y = {**meta("float32", [2, 6]), "sizes": [expression(S), {"as_int": 6}]}
    shape = {"as_ints": [-1, 6]}
    nodes = [call("aten.view.default", "y", self=ref("x"), size=shape)]
    path = saved(tmp_path, program({"x": x}, {}, nodes, {"y": y}, ["y"]), {})
    assert "float32[2 * batch_unit, 3]" in import_model(path, Options()).text
    model: Any = load(path)
    for rows in (2, 6):
        array = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
        actual = model(burn.tensor(array)).numpy()
        np.testing.assert_array_equal(actual, array.reshape(-1, 6))


def test_ranges_are_told(tmp_path: Path) -> None:
    content = program(
        {"x": meta("float32", ["s1", "s2", "s3", "s4"])},
        {},
        [call("aten.relu.default", "y", self=ref("x"))],
        {"y": meta("float32", ["s1", "s2", "s3", "s4"])},
        ["y"],
    )
    endless = 2**63 - 2
    content["range_constraints"] = {
        "s1": {"min_val": 2, "max_val": 64},
        "s2": {"min_val": 2, "max_val": endless},
        "s3": {"min_val": 4, "max_val": None},
        "s4": {"min_val": "2", "max_val": [7]},
        "s9": {"min_val": 2, "max_val": 3},
    }
    path = saved(tmp_path, content, {})
    message = "Exported for batch 2 to 64, height 4 or more."
    assert message in import_model(path, Options(class_name="Net")).text
    odd: Any
    for odd in (None, [], {"s1": 3}, {"s1": {}}):
        content["range_constraints"] = odd
        path = saved(tmp_path, content, {})
        assert "Exported for" not in import_model(path, Options(class_name="N")).text


def test_an_average_pool_keeps_an_axis_that_varies(tmp_path: Path) -> None:
    x = meta("float32", [2, 3, 5, 4])
    x["sizes"][2] = expression(S)
    y = meta("float32", [2, 3, 5, 2])
    y["sizes"][2] = expression(S)
    rows = call("aten.sym_size.int", "rows", self=ref("x"), dim={"as_int": 2})
    rows["outputs"] = [{"as_sym_int": {"as_name": "rows"}}]
    size = {"as_sym_ints": [{"as_name": "rows"}, {"as_int": 2}]}
    pool = call(
        "aten.adaptive_avg_pool2d.default", "y", self=ref("x"), output_size=size
    )
    content = program({"x": x}, {}, [rows, pool], {"y": y}, ["y"])
    content["graph_module"]["graph"]["sym_int_values"]["rows"] = {"as_int": 5}
    model: Any = load(saved(tmp_path, content, {}))
    for extent in (5, 8):
        array = np.random.default_rng(extent).normal(size=(2, 3, extent, 4))
        array = array.astype(np.float32)
        actual = model(burn.tensor(array)).numpy()
        expected = array.reshape(2, 3, extent, 2, 2).mean(-1)
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
