"""Extents of a traced call that the program allows to vary."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from burn_import.options import Options
from burn_import.pipeline import import_model
from tests.importer.pytorch_files import tensor
from tests.importer.script_files import example, net
from tests.importer.torchscript.test_programs import drawn

MESSAGES = """
source = torch.select(edges, 0, 0)
target = torch.select(edges, 0, 1)
messages = torch.mul(torch.index(x, [source]), torch.unsqueeze(kinds, 1))
return torch.index_add(x, 0, target, messages)
"""


def test_an_extent_on_different_axes_of_inputs_is_one(tmp_path: Path) -> None:
    inputs = (example("Float", 7, 3), example("Long", 2, 20), example("Float", 20))
    names = "x: Tensor,\n    edges: Tensor,\n    kinds: Tensor"
    model: Any = load(net(MESSAGES, *inputs, parameters=names).saved(tmp_path))
    for nodes, count in ((7, 20), (11, 33)):
        x, kinds = drawn(nodes, 3), drawn(count)
        edges = np.random.default_rng(count).integers(0, nodes, (2, count))
        expected = x.copy()
        np.add.at(expected, edges[1], x[edges[0]] * kinds[:, None])
        actual = model(*map(burn.tensor, (x, edges, kinds))).numpy()
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


CUT = "a, b, c, = {}\nreturn torch.add(torch.mul(a, b), torch.sum(c))"


@pytest.mark.parametrize(
    "call",
    [
        "torch.unbind(torch.slice(x, 1, 0, 3), 1)",
        "torch.unbind(torch.mul(torch.slice(x, 1, 0, 3), CONSTANTS.c0), 1)",
    ],
)
def test_the_extent_of_what_is_unpacked_is_known_by_its_names(
    call: str, tmp_path: Path
) -> None:
    constants = (tensor("0", np.array(1.0, np.float32)),)
    script = net(CUT.format(call), example("Float", 2, 3), constants=constants)
    model: Any = load(script.saved(tmp_path))
    for width in (3, 8):
        x = drawn(4, width)
        a, b, c = x[:, :3].T
        actual = model(burn.tensor(x)).numpy()
        expected = a * b + c.sum()
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="split"):
        model(burn.tensor(drawn(4, 2)))


@pytest.mark.parametrize("call", ["torch.squeeze(x, 0)", "torch.squeeze(x)"])
def test_an_extent_that_decides_what_is_squeezed_is_that_of_the_trace(
    call: str, tmp_path: Path
) -> None:
    script = net(f"return torch.mul({call}, 2)", example("Float", 1, 3))
    model: Any = load(script.saved(tmp_path))
    assert model(burn.tensor(drawn(1, 3))).shape == (3,)
    with pytest.raises(ValueError, match=r"expected float32\[1, "):
        model(burn.tensor(drawn(4, 3)))


def test_an_extent_that_is_not_squeezed_may_vary(tmp_path: Path) -> None:
    script = net("return torch.squeeze(x, 0)", example("Float", 2, 3))
    model: Any = load(script.saved(tmp_path))
    assert model(burn.tensor(drawn(4, 3))).shape == (4, 3)


WINDOWS = """
_0 = int(ops.prim.NumToTensor(torch.size(x, 0)))
_1 = ops.prim.NumToTensor(torch.size(x, 1))
_2 = int(torch.floor_divide(_1, CONSTANTS.c0))
_3 = torch.view(x, [_0, _2, 4])
return torch.flatten(torch.sub(_3, torch.mean(_3, [2], True)), 1)
"""


def test_extents_are_multiples_of_windows(tmp_path: Path) -> None:
    constants = (tensor("0", np.array(4, np.int64)),)
    script = net(WINDOWS, example("Float", 2, 12), constants=constants)
    model: Any = load(script.saved(tmp_path))
    for batch, length in ((2, 12), (3, 20), (1, 4)):
        x = drawn(batch, length)
        windows = x.reshape(batch, -1, 4)
        expected = (windows - windows.mean(2, keepdims=True)).reshape(batch, -1)
        actual = model(burn.tensor(x)).numpy()
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="axis 1 has to be a multiple of 4"):
        model(burn.tensor(drawn(2, 14)))


def test_equal_extents_of_several_ranks_are_multiples_on_their_own(
    tmp_path: Path,
) -> None:
    inputs = (example("Float", 2, 12), example("Float", 2, 12, 5))
    code = WINDOWS.replace(
        "return torch.flatten(torch.sub(_3, torch.mean(_3, [2], True)), 1)",
        "return torch.add(torch.mean(_3, [1, 2]), "
        "torch.sum(torch.mul(torch.transpose(y, 1, 2), CONSTANTS.c1), [1, 2]))",
    )
    weights = np.arange(12, dtype=np.float32)
    constants = (tensor("0", np.array(4, np.int64)), tensor("1", weights))
    names = "x: Tensor,\n    y: Tensor"
    script = net(code, *inputs, parameters=names, constants=constants)
    model: Any = load(script.saved(tmp_path))
    for batch, length in ((2, 12), (3, 20)):
        x, y = drawn(batch, length), drawn(batch, 12, 5)
        expected = x.mean(1) + (y.transpose(0, 2, 1) * weights).sum((1, 2))
        actual = model(burn.tensor(x), burn.tensor(y)).numpy()
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="axis 1 is fixed to 12"):
        model(burn.tensor(drawn(2, 12)), burn.tensor(drawn(2, 16, 5)))


TOKENS = """
_0 = torch.add(x, torch.unsqueeze(places, 0))
return torch.add(_0, torch.sum(torch.mul(text, CONSTANTS.c0), [1, 2], True))
"""


def test_equal_extents_vary_together_beside_an_equal_fixed_one(
    tmp_path: Path,
) -> None:
    inputs = (example("Float", 2, 7, 3), example("Float", 7, 3))
    names = "x: Tensor,\n    places: Tensor,\n    text: Tensor"
    weights = np.arange(7, dtype=np.float32)
    script = net(
        TOKENS,
        *(*inputs, example("Float", 2, 5, 7)),
        parameters=names,
        constants=(tensor("0", weights),),
    )
    path = script.saved(tmp_path)
    model: Any = load(path)
    for batch, tokens in ((2, 7), (3, 9)):
        x, places, text = drawn(batch, tokens, 3), drawn(tokens, 3), drawn(batch, 4, 7)
        expected = x + places + (text * weights).sum((1, 2), keepdims=True)
        actual = model(*map(burn.tensor, (x, places, text))).numpy()
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    assert 'x="float32[batch, ' in import_model(path, Options()).text


def test_a_batch_is_named_after_the_input_of_highest_rank(tmp_path: Path) -> None:
    code = "return torch.mul(torch.unsqueeze(steps, 1), x)"
    inputs = (example("Float", 2), example("Float", 2, 3))
    script = net(code, *inputs, parameters="steps: Tensor,\n    x: Tensor")
    text = import_model(script.saved(tmp_path), Options()).text
    assert 'steps="float32[batch]"' in text
    assert 'x="float32[batch, length]"' in text


def test_an_extent_joined_with_the_batch_is_fixed(tmp_path: Path) -> None:
    script = net("return torch.view(x, [-1, 12])", example("Float", 2, 12))
    model: Any = load(script.saved(tmp_path))
    assert model(burn.tensor(drawn(5, 12))).shape == (5, 12)
    with pytest.raises(ValueError, match="axis 1 is fixed to 12"):
        model(burn.tensor(drawn(2, 18)))


@pytest.mark.parametrize(
    ("code", "dtype", "result"),
    [
        ("torch.index(x, [None, y])", np.int64, lambda x, y: x[:, y]),
        ("torch.where(y, x, torch.neg(x))", np.bool_, lambda x, y: np.where(y, x, -x)),
        ("torch.cross_entropy_loss(x, y, None, 2, -100, 0.)", np.int64, None),
        ("torch.repeat_interleave(x, y, 0)", np.int64, lambda x, y: x.repeat(y, 0)),
        ("torch.one_hot(y, 3)", np.int64, lambda x, y: np.eye(3)[y]),
    ],
    ids=["index", "where", "classes", "repeats", "one_hot"],
)
def test_the_dtype_of_an_input_without_example_is_what_the_program_can_take(
    code: str, dtype: Any, result: Any, tmp_path: Path
) -> None:
    script = net(f"return {code}", parameters="x: Tensor,\n    y: Tensor")
    shapes = {"x": ("n", 3), "y": (3,) if dtype is np.bool_ else ("n",)}
    model: Any = load(script.saved(tmp_path), Options(shapes=shapes))
    x, y = drawn(3, 3), np.array([1, 0, 2]).astype(dtype)
    actual = model(burn.tensor(x), burn.tensor(y)).numpy()
    if result is not None:
        np.testing.assert_array_equal(actual, result(x, y))


def test_sizes_that_vary_become_tensors_of_the_dtype_that_is_named(
    tmp_path: Path,
) -> None:
    code = """n = torch.size(x, 0)
pairs = torch.tensor([[n, 2], [3, n]], dtype=6)
half = torch.tensor(torch.div(n, 2))
count = torch.tensor(n, dtype=6)
return torch.add(torch.mul(x, pairs), torch.div(half, count))"""
    script = net(code).saved(tmp_path)
    model: Any = load(script, Options(shapes={"x": ("batch", 2, 2)}))
    for batch in (3, 5):
        x = drawn(batch, 2, 2)
        pairs = np.array([[batch, 2], [3, batch]], np.float32)
        expected = x * pairs + np.float32(0.5)
        actual = model(burn.tensor(x)).numpy()
        assert actual.dtype == np.float32
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_two_inputs_that_only_work_together_as_integers_become_int64(
    tmp_path: Path,
) -> None:
    script = net(
        "return torch.bitwise_and(x, y)", parameters="x: Tensor,\n    y: Tensor"
    )
    model: Any = load(script.saved(tmp_path), Options(shapes={"x": (3,), "y": (3,)}))
    x, y = np.array([6, 3, 5]), np.array([2, 7, 4])
    actual = model(burn.tensor(x), burn.tensor(y)).numpy()
    np.testing.assert_array_equal(actual, x & y)


def test_a_list_with_one_gradient_is_unpacked(tmp_path: Path) -> None:
    body = "_0, = torch.gradient(x, spacing=None, dim=1)\nreturn _0"
    script = net(body, example("Float", 2, 5))
    model: Any = load(script.saved(tmp_path))
    x = drawn(2, 5)
    expected = np.gradient(x, axis=1)
    np.testing.assert_allclose(model(burn.tensor(x)).numpy(), expected, rtol=1e-6)


def test_a_tensor_is_split_evenly_along_an_axis_that_varies(tmp_path: Path) -> None:
    script = net("a, b = torch.tensor_split(x, 2, 1)\nreturn b", example("Float", 2, 5))
    model: Any = load(script.saved(tmp_path))
    for length in (4, 7):
        x = drawn(3, length)
        expected = np.array_split(x, 2, 1)[1]
        np.testing.assert_array_equal(model(burn.tensor(x)).numpy(), expected)


def test_extents_vary_beside_one_that_has_to_be_a_number(tmp_path: Path) -> None:
    call = "torch.instance_norm(x, None, None, None, None, True, 0.1, 1e-05, True)"
    script = net(f"return {call}", example("Float", 2, 3, 8, 10))
    model: Any = load(script.saved(tmp_path))
    x = drawn(4, 3, 7, 12)
    spread = x.var((2, 3), keepdims=True)
    expected = (x - x.mean((2, 3), keepdims=True)) / np.sqrt(spread + 1e-5)
    actual = model(burn.tensor(x)).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["avg", "max"])
def test_the_size_of_an_adaptive_pool_is_computed(kind: str, tmp_path: Path) -> None:
    pool = f"torch.adaptive_{kind}_pool2d(x, [_2, int(_1)])"
    forward = f"""
_0 = ops.prim.NumToTensor(torch.size(x, 2))
_1 = ops.prim.NumToTensor(torch.size(x, 3))
_2 = int(torch.floor_divide(_0, CONSTANTS.c0))
y{", indices, =" if kind == "max" else " ="} {pool}
return torch.add(y, 0)
"""
    constants = (tensor("0", np.array(2)),)
    script = net(forward, example("Float", 2, 3, 6, 4), constants=constants)
    shapes = {"x": ("batch", 3, "height", "width")}
    path = script.saved(tmp_path)
    text = import_model(path, Options(shapes=shapes)).text
    assert f"ops.adaptive_{kind}_pool(x, output_size=(height // 2, width))" in text
    model: Any = load(path, options=Options(shapes=shapes))
    for height in (6, 7):
        x = drawn(4, 3, height, 5)
        bounds = [(i * height // 3, -(-(i + 1) * height // 3)) for i in range(3)]
        function = np.mean if kind == "avg" else np.max
        expected = np.stack([function(x[:, :, a:b], 2) for a, b in bounds], 2)
        actual = model(burn.tensor(x)).numpy()
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
