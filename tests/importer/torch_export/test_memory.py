"""Strided views of tensors in any memory layout."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from burn_ir import UnsupportedModel
from burn_ir.types import Array
from tests.importer.exported_files import call, meta, program, ref, saved


def laid_out(
    dims: Sequence[int | str], strides: Sequence[int], offset: int = 0
) -> dict[str, Any]:
    """Return the type of a tensor with the given strides and offset."""
    result = meta("float32", dims)
    result["strides"] = [{"as_int": stride} for stride in strides]
    result["storage_offset"] = {"as_int": offset}
    return result


def strided(
    folder: Path, view: Any, kind: dict[str, Any], size: list[int], stride: list[int]
) -> Any:
    """Return the module that gathers a strided view [..] of x [4, 5]."""
    nodes = [
        view,
        call(
            "aten.as_strided.default",
            "y",
            self=ref("view"),
            size={"as_ints": size},
            stride={"as_ints": stride},
        ),
    ]
    values = {"view": kind, "y": meta("float32", size)}
    x = {"x": meta("float32", [4, 5])}
    return load(saved(folder, program(x, {}, nodes, values, ["y"]), {}))


TURNED = call("aten.permute.default", "view", self=ref("x"), dims={"as_ints": [1, 0]})
SLICED = call(
    "aten.slice.Tensor",
    "view",
    self=ref("x"),
    dim={"as_int": 1},
    start={"as_int": 1},
    end={"as_int": 4},
)


def expected(x: Array, size: list[int], stride: list[int], offset: int) -> Array:
    view = np.lib.stride_tricks.as_strided(
        x.ravel()[offset:], size, [4 * step for step in stride]
    )
    return np.array(view)


@pytest.mark.parametrize(
    ("view", "kind", "offset", "size", "stride"),
    [
        (TURNED, laid_out([5, 4], [1, 5]), 0, [3, 2, 2], [2, 9, 1]),
        (SLICED, laid_out([4, 3], [5, 1], 1), 1, [2, 3], [10, 1]),
    ],
    ids=["turned", "sliced"],
)
def test_places_count_in_memory(
    view: Any,
    kind: dict[str, Any],
    offset: int,
    size: list[int],
    stride: list[int],
    tmp_path: Path,
) -> None:
    model = strided(tmp_path, view, kind, size, stride)
    x = np.random.default_rng(2).standard_normal((4, 5), np.float32)
    actual = model(burn.tensor(x)).numpy()
    np.testing.assert_array_equal(actual, expected(x, size, stride, offset))


def test_memory_around_a_part_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModel, match="got memory outside of it") as e:
        strided(tmp_path, SLICED, laid_out([4, 3], [5, 1], 1), [2, 4], [5, 1])
    assert e.value.problems[0].node == "y"


def test_another_order_of_what_varies_is_refused(tmp_path: Path) -> None:
    x = {"x": laid_out(["n", 5], [1, 7])}
    sizes = {"as_ints": [2, 3]}
    node = call("aten.as_strided.default", "y", self=ref("x"), size=sizes, stride=sizes)
    content = program(x, {}, [node], {"y": meta("float32", [2, 3])}, ["y"])
    with pytest.raises(UnsupportedModel, match="a contiguous tensor"):
        load(saved(tmp_path, content, {}))


def test_a_change_of_a_strided_view_is_seen_in_what_it_views(tmp_path: Path) -> None:
    x = {"x": meta("float32", [4, 5])}
    shape: dict[str, Any] = {"size": {"as_ints": [2, 3]}, "stride": {"as_ints": [7, 2]}}
    nodes = [
        call("aten.mul.Scalar", "y", self=ref("x"), other={"as_int": 1}),
        call("aten.as_strided.default", "view", self=ref("y"), **shape),
        call("aten.add_.Scalar", "more", self=ref("view"), other={"as_int": 10}),
    ]
    small = meta("float32", [2, 3])
    values = {"y": meta("float32", [4, 5]), "view": small, "more": small}
    model: Any = load(saved(tmp_path, program(x, {}, nodes, values, ["y"]), {}))
    given = np.random.default_rng(3).standard_normal((4, 5), np.float32)
    places = [0, 2, 4, 7, 9, 11]
    changed = given.ravel().copy()
    changed[places] += 10
    actual = model(burn.tensor(given)).numpy()
    np.testing.assert_array_equal(actual, changed.reshape(4, 5))


def number(target: str, **args: Any) -> dict[str, Any]:
    """Return a call that gives a number."""
    node = call(target, "number", self=ref("x"), **args)
    return {**node, "outputs": [{"as_sym_int": {"as_name": "number"}}]}


@pytest.mark.parametrize(
    ("target", "args", "expected"),
    [
        ("aten.sym_stride.int", {"dim": {"as_int": 0}}, 12),
        ("aten.sym_stride.int", {"dim": {"as_int": -1}}, 1),
        ("aten.sym_storage_offset.default", {}, 0),
        ("aten.sym_is_contiguous.default", {}, 1),
    ],
)
def test_numbers_of_a_layout_are_known(
    target: str, args: dict[str, Any], expected: int, tmp_path: Path
) -> None:
    node = number(target, **args)
    add = call("aten.add.Tensor", "y", self=ref("x"), other=node["outputs"][0])
    dims = ["n", 3, 4]
    values = {"y": meta("float32", dims)}
    content = program({"x": meta("float32", dims)}, {}, [node, add], values, ["y"])
    content["graph_module"]["graph"]["sym_int_values"] = {"number": {"as_int": 1}}
    model: Any = load(saved(tmp_path, content, {}))
    x = np.random.default_rng(4).standard_normal((2, 3, 4), np.float32)
    np.testing.assert_array_equal(
        model(burn.tensor(x)).numpy(), x + np.float32(expected)
    )


def test_what_grows_keeps_its_elements(tmp_path: Path) -> None:
    x = {"x": meta("float32", ["n", 3])}
    sizes = {"as_ints": [4, 5]}
    node = call("aten.resize.default", "y", self=ref("x"), size=sizes)
    content = program(x, {}, [node], {"y": meta("float32", [4, 5])}, ["y"])
    model: Any = load(saved(tmp_path, content, {}))
    for rows in (2, 5, 9):
        given = np.random.default_rng(rows).standard_normal((rows, 3), np.float32)
        actual, count = model(burn.tensor(given)).numpy(), min(20, 3 * rows)
        assert actual.shape == (4, 5)
        np.testing.assert_array_equal(actual.ravel()[:count], given.ravel()[:count])
