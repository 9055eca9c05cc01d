"""Numbers that a program computes, and Python functions of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from tests.importer.exported_files import call, meta, program, ref, saved

SIZES = (2, 5)
ROWS = meta("float32", ["n", 3])


def number(target: str, name: str, *args: Any, kind: str = "int") -> dict[str, Any]:
    """Return a call that gives a number, with positional arguments."""
    node = call("aten.x", name, **{f"a{i}": arg for i, arg in enumerate(args)})
    return {
        **node,
        "target": target,
        "outputs": [{f"as_sym_{kind}": {"as_name": name}}],
    }


def extent(name: str = "size") -> dict[str, Any]:
    """Return the call for the first extent of x."""
    node = call("aten.sym_size.int", name, self=ref("x"), dim={"as_int": 0})
    return {**node, "outputs": [{"as_sym_int": {"as_name": name}}]}


def known(name: str, kind: str = "int") -> dict[str, Any]:
    """Return an argument that is a computed number."""
    return {f"as_sym_{kind}": {"as_name": name}}


def loaded(folder: Path, nodes: list[Any], values: Any, kinds: Any = None) -> Any:
    """Return the module of a program of x [n, 3] with output y."""
    content = program({"x": ROWS}, {}, nodes, values, ["y"])
    graph = content["graph_module"]["graph"]
    for node in nodes:
        ((kind, of),) = node["outputs"][0].items()
        if kind != "as_tensor":
            graph[f"{kind[3:]}_values"][of["as_name"]] = {"as_int": 1}
    return load(saved(folder, content, {}))


def same(model: Any, expected: Any) -> None:
    """Check a module at two sizes."""
    for size in SIZES:
        x = np.random.default_rng(size).uniform(-2, 3, (size, 3)).astype(np.float32)
        actual = model(burn.tensor(x)).numpy()
        np.testing.assert_allclose(actual, expected(x), rtol=1e-6)


FUNCTIONS: dict[str, Any] = {
    "_operator.add": lambda n: n + 3,
    "_operator.sub": lambda n: n - 3,
    "_operator.mul": lambda n: n * 3,
    "_operator.floordiv": lambda n: n // 3,
    "_operator.mod": lambda n: n % 3,
    "_operator.pow": lambda n: n**3,
}


@pytest.mark.parametrize("target", FUNCTIONS)
def test_functions_of_extents_are_computed(target: str, tmp_path: Path) -> None:
    nodes = [
        extent(),
        number(target, "m", known("size"), {"as_int": 3}),
        call("aten.mul.Tensor", "y", self=ref("x"), other=known("m")),
    ]
    same(loaded(tmp_path, nodes, {"y": ROWS}), lambda x: x * FUNCTIONS[target](len(x)))


@pytest.mark.parametrize(
    ("target", "bound"), [("_operator.ge", 3), ("_operator.le", 2)]
)
def test_a_test_of_extents_chooses(target: str, bound: int, tmp_path: Path) -> None:
    nodes = [
        extent(),
        number(target, "test", known("size"), {"as_int": bound}, kind="bool"),
        number(
            "torch.sym_ite", "m", known("test", "bool"), known("size"), {"as_int": 7}
        ),
        call("aten.mul.Tensor", "y", self=ref("x"), other=known("m")),
    ]

    def expected(x: Any) -> Any:
        holds = len(x) >= bound if target.endswith("ge") else len(x) <= bound
        return x * (len(x) if holds else 7)

    same(loaded(tmp_path, nodes, {"y": ROWS}), expected)


@pytest.mark.parametrize(
    "target", ["aten.item.default", "aten._local_scalar_dense.default"]
)
def test_an_element_is_a_number(target: str, tmp_path: Path) -> None:
    item = number(f"torch.ops.{target}", "m", kind="float")
    item["inputs"] = [{"name": "self", "arg": ref("total"), "kind": 1}]
    nodes = [
        call("aten.sum.default", "total", self=ref("x")),
        item,
        call("aten.mul.Tensor", "y", self=ref("x"), other=known("m", "float")),
    ]
    values = {"total": meta("float32", []), "y": ROWS}
    same(loaded(tmp_path, nodes, values), lambda x: x * x.sum())


def test_elements_are_counted(tmp_path: Path) -> None:
    count = number("torch.ops.aten.sym_numel.default", "m")
    count["inputs"] = [{"name": "self", "arg": ref("x"), "kind": 1}]
    share = number("torch.sym_float", "share", known("m"), kind="float")
    nodes = [
        count,
        share,
        call("aten.div.Tensor", "y", self=ref("x"), other=known("share", "float")),
    ]
    same(loaded(tmp_path, nodes, {"y": ROWS}), lambda x: x / np.float32(x.size))


def test_a_number_becomes_a_tensor_wherever_it_is_to_be(tmp_path: Path) -> None:
    given: dict[str, Any] = {"s": {"as_float": 2.5}, "dtype": {"as_scalar_type": 7}}
    device = {"as_device": {"type": "cpu", "index": None}}
    nodes = [
        call("prims.scalar_tensor.default", "m", **given, device=device),
        call("aten.mul.Tensor", "y", self=ref("x"), other=ref("m")),
    ]
    values = {"m": meta("float32", []), "y": ROWS}
    same(loaded(tmp_path, nodes, values), lambda x: x * np.float32(2.5))


@pytest.mark.parametrize(
    ("target", "args"),
    [
        ("aten.empty.memory_format", {}),
        ("aten.empty_strided.default", {"stride": {"as_ints": [1, 2]}}),
        ("aten.empty_permuted.default", {"physical_layout": {"as_ints": [1, 0]}}),
    ],
)
def test_what_is_empty_has_its_extents(target: str, args: Any, tmp_path: Path) -> None:
    size = {"as_sym_ints": [{"as_name": "size"}, {"as_int": 2}]}
    some = {"as_sym_ints": [{"as_name": "size"}, {"as_int": 2}]}
    nodes = [
        extent(),
        call(target, "m", size=size, **args),
        call("aten.expand.default", "part", self=ref("p"), size=some),
        call("aten.copy_.default", "n", self=ref("m"), src=ref("part")),
        call("aten.cat.default", "y", tensors={"as_tensors": []}, dim={"as_int": 1}),
    ]
    nodes[2]["inputs"][0]["arg"] = ref("first")
    first: dict[str, Any] = {
        "dim": {"as_int": 1},
        "start": {"as_int": 0},
        "end": {"as_int": 1},
    }
    nodes.insert(0, call("aten.slice.Tensor", "first", self=ref("x"), **first))
    tensors = [{"name": "x"}, {"name": "m"}]
    nodes[-1]["inputs"][0]["arg"] = {"as_tensors": tensors}
    pair = meta("float32", ["n", 2])
    values = {"first": meta("float32", ["n", 1]), "m": pair, "part": pair, "n": pair}
    model = loaded(tmp_path, nodes, {**values, "y": meta("float32", ["n", 5])})
    same(model, lambda x: np.concatenate([x, x[:, :1], x[:, :1]], 1))
