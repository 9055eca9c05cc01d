"""TorchScript programs: interpreted without PyTorch, refused with place and name."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from burn_import.frontends.torch_export.complex_as_real import stored_array
from burn_import.frontends.torchscript import read
from burn_import.options import Options
from burn_import.pipeline import import_model
from burn_ir import InvalidModel, UnsupportedModel
from tests.importer.pytorch_files import tensor
from tests.importer.script_files import LINEAR, example, mlp, module, net, weight
from tests.modules import Array


def drawn(*shape: int) -> Array:
    """Return random inputs."""
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def test_a_traced_program_computes_what_it_says(tmp_path: Path) -> None:
    script, weights = mlp()
    model: Any = load(script.saved(tmp_path))
    actual = {key: value.shape for key, value in model.state_dict().items()}
    assert actual == {key: array.shape for key, array in weights.items()}
    for batch in (2, 6):
        x = drawn(batch, 5)
        hidden = x @ weights["layers.0.weight"].T + weights["layers.0.bias"]
        scores = np.maximum(hidden, 0) @ weights["layers.2.weight"].T
        scores = np.exp(scores + weights["layers.2.bias"])
        expected = scores / scores.sum(-1, keepdims=True)
        actual = model(burn.tensor(x)).numpy()
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_classes_are_those_of_the_author(tmp_path: Path) -> None:
    path = mlp()[0].saved(tmp_path)
    text = import_model(path, Options(class_name="Net")).text
    assert "self.layers = nn.Sequential(" in text
    assert "nn.Linear(5, 7)" in text


def test_constants_and_numbers(tmp_path: Path) -> None:
    forward = """
_0 = ops.prim.NumToTensor(torch.size(x, 1))
_1 = torch.add(torch.mul(x, CONSTANTS.c0), int(_0))
_2 = torch.reshape(_1, [int(torch.mul(_0, CONSTANTS.c1)), -1])
a, b, = torch.split(_2, 6)
return torch.sub(a, b, alpha=0.5)
"""
    constants = (
        tensor("0", np.array(2.5, np.float32)),
        tensor("1", np.array(3)),
    )
    script = net(forward, example("Float", 3, 4), constants=constants)
    model: Any = load(script.saved(tmp_path))
    x = drawn(3, 4)
    y = (x * np.float32(2.5) + 4).reshape(12, -1)
    np.testing.assert_allclose(
        model(burn.tensor(x)).numpy(), y[:6] - 0.5 * y[6:], rtol=1e-6
    )


def test_weights_that_freezing_made_constants_are_those_of_layers(
    tmp_path: Path,
) -> None:
    forward = """
_0 = torch.relu(torch.linear(x, CONSTANTS.c0, CONSTANTS.c1))
return torch.add(torch.matmul(_0, CONSTANTS.c2), CONSTANTS.c3)
"""
    arrays = [drawn(5, 4), drawn(5), drawn(5, 3), drawn(3)]
    constants = tuple(tensor(str(n), array) for n, array in enumerate(arrays))
    script = net(forward, example("Float", 2, 4), constants=constants)
    path = script.saved(tmp_path)
    text = import_model(path, Options(class_name="Net")).text
    assert "self.linear = nn.Linear(4, 5)" in text
    assert "self.linear_2 = nn.Linear(5, 3)" in text
    model: Any = load(path)
    x, (w, b, v, c) = drawn(6, 4), arrays
    expected = np.maximum(x @ w.T + b, 0) @ v + c
    actual = model(burn.tensor(x)).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_modules_of_the_same_tensors_are_called_where_they_were(
    tmp_path: Path,
) -> None:
    (array, w), (bias, b) = weight("0", 4, 4), weight("1", 4, seed=1)
    linear = "torch.nn.modules.linear.Linear"
    names = ("head", "tail", "last")
    parts: dict[str, Any] = {n: module(linear, weight=w, bias=b) for n in names}
    calls = "tail = self.tail\nh = (tail).forward(x, )\nh0 = (tail).forward1(h, )\n"
    script = net(
        f"{calls}h1 = (tail).forward2(torch.relu(h0), )\n"
        "return torch.add((tail).forward3(h1, ), 1)",
        example("Float", 2, 4),
        **parts,
    )
    again = LINEAR[LINEAR.index("  def forward") :]
    more = "".join(again.replace("forward(", f"forward{n}(") for n in (1, 2, 3))
    script.code["__torch__/torch/nn/modules/linear.py"] = LINEAR + more
    model: Any = load(script.saved(tmp_path))
    keys = {f"{n}.{leaf}" for n in parts for leaf in ("weight", "bias")}
    assert set(model.state_dict()) == keys
    assert model.head.weight is model.tail.weight is model.last.weight
    x = drawn(6, 4)
    y = np.maximum((x @ array.T + bias) @ array.T + bias, 0)
    y = (y @ array.T + bias) @ array.T + bias + 1
    actual = model(burn.tensor(x)).numpy()
    np.testing.assert_allclose(actual, y, rtol=1e-4, atol=1e-5)


STORED = np.array([1 + 2j, 3], np.complex64)
BRANCH = """if bool(torch.gt(torch.sum(x), 100)):
  z = torch.complex(x, x)
else:
  z = torch.mul(torch.complex(x, x), -0.5-1.j)
return torch.view_as_real(z)"""
LOOP = """z = torch.complex(x, x)
zs = annotate(List[Tensor], [])
for n in range(torch.size(x, 0)):
  z = torch.mul(z, 0.+0.5j)
  _0 = torch.append(zs, z)
return torch.view_as_real(torch.add(z, torch.sum(torch.stack(zs), [0])))"""


def rounds(x: Array) -> Array:
    """Return the result of ``LOOP``."""
    zs = [(x + 1j * x) * 0.5j ** (n + 1) for n in range(len(x))]
    return zs[-1] + sum(zs)


@pytest.mark.parametrize(
    "forward, reference",
    [
        ("torch.view_as_real(torch.add(x, CONSTANTS.c0))", lambda x: x + STORED),
        (
            "torch.abs(torch.mul(torch.to(x, 9), 0.5+2.j))",
            lambda x: abs(x * (0.5 + 2j)),
        ),
        (BRANCH, lambda x: (x + 1j * x) * (-0.5 - 1j)),
        (LOOP, rounds),
        (
            "torch.fft_irfft(torch.conj(torch.fft_rfft(x, 5)), 5)",
            lambda x: np.fft.irfft(np.fft.rfft(x, 5).conj(), 5),
        ),
        (
            "z = torch.complex(x, x)\n_0 = torch.mul_(torch.select(z, 1, 0), 0.+1.j)\n"
            "_1 = torch.add_(torch.view_as_real(z), 1.)\nreturn torch.view_as_real(z)",
            lambda x: (x + 1j * x) * [1j, 1] + (1 + 1j),
        ),
    ],
    ids=["constant", "number", "branch", "loop", "fourier", "in place"],
)
def test_complex_numbers(forward: str, reference: Any, tmp_path: Path) -> None:
    text = forward if "return" in forward else f"return {forward}"
    constants = (tensor("0", STORED),)
    path = net(text, example("Float", 3, 2), constants=constants).saved(tmp_path)
    x = drawn(3, 2)
    expected = stored_array(np.asarray(reference(x)))
    model: Any = load(path)
    actual = model(burn.tensor(x)).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_complex_inputs_are_pairs(tmp_path: Path) -> None:
    path = net("return torch.t(x)", example("ComplexFloat", 3, 2)).saved(tmp_path)
    model: Any = load(path)
    x = drawn(3, 2, 2)
    np.testing.assert_array_equal(model(burn.tensor(x)).numpy(), np.swapaxes(x, 0, 1))


def test_complex_numbers_on_one_side_of_a_branch_are_refused(tmp_path: Path) -> None:
    forward = BRANCH.replace("torch.complex(x, x)\nelse", "x\nelse")
    path = net(forward, example("Float", 3, 2)).saved(tmp_path)
    with pytest.raises(UnsupportedModel, match="complex on one side"):
        read(path)


def test_what_is_not_supported_is_named_with_its_place(tmp_path: Path) -> None:
    forward = "_0 = torch.frobnicate(x)\nreturn torch.knurl(torch.relu(x), _0)"
    path = net(forward, example("Float", 2, 3)).saved(tmp_path)
    with pytest.raises(UnsupportedModel) as caught:
        read(path)
    assert str(caught.value).splitlines() == [
        "net.pt: code/__torch__.py, line 7: torch.frobnicate is not supported"
    ]


def test_a_shape_that_is_missing_is_asked_for(tmp_path: Path) -> None:
    path = net("return torch.relu(x)").saved(tmp_path)
    with pytest.raises(
        UnsupportedModel, match="pass its shape, such as --shape x=batch,3"
    ):
        load(path)
    model: Any = load(path, Options(shapes={"x": ("batch", 3)}))
    x = drawn(4, 3)
    np.testing.assert_array_equal(model(burn.tensor(x)).numpy(), np.maximum(x, 0))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("torch.promote_types(5, 6)", "float32"),
        ("torch.promote_types(4, 5)", "float16"),
        ("torch.promote_types(15, 5)", "float32"),
        ("torch.promote_types(11, 3)", "int32"),
        ("torch.result_type(x, torch.to(x, 7))", "float64"),
        ("torch.result_type(torch.to(x, 3), 2.5)", "float32"),
    ],
)
def test_dtypes_promote_as_in_pytorch(call: str, expected: str, tmp_path: Path) -> None:
    script = net(f"kind = {call}\nreturn torch.to(x, kind)", example("Float", 3))
    model: Any = load(script.saved(tmp_path))
    assert model(burn.tensor(drawn(3))).numpy().dtype == expected


def test_elements_are_repeated_by_a_tensor_of_counts(tmp_path: Path) -> None:
    forward = """
_0 = torch.select(x, 1, 0)
return torch.repeat_interleave(torch.select(x, 1, 1), _0)
"""
    model: Any = load(net(forward, example("Long", 3, 2)).saved(tmp_path))
    x = np.array([[2, 5], [0, 7], [3, 1]])
    actual = model(burn.tensor(x)).numpy()
    np.testing.assert_array_equal(actual, np.repeat(x[:, 1], x[:, 0]))


def test_a_number_of_the_code_is_no_parameter(tmp_path: Path) -> None:
    forward = """
y = torch.clone(x)
y0 = torch.mul_(y, CONSTANTS.c0)
return torch.add(y0, CONSTANTS.c1)
"""
    constants = (tensor("0", np.array(2)), tensor("1", np.array(0.5, np.float32)))
    script = net(forward, example("Float", 3, 4), constants=constants)
    model: Any = load(script.saved(tmp_path))
    assert model.state_dict() == {}
    x = drawn(3, 4)
    actual = model(burn.tensor(x)).numpy()
    np.testing.assert_allclose(actual, x * 2 + 0.5, rtol=1e-6)


@pytest.mark.parametrize("places", [16, 40])
def test_an_extent_is_open_up_to_the_length_of_a_table(
    tmp_path: Path, places: int
) -> None:
    """Rows of a position table are added; a trace has 8 of at most ``places``."""
    forward = """
_0 = ops.prim.NumToTensor(torch.size(x, 1))
_1 = torch.slice(CONSTANTS.c0, 0, 0, int(_0))
return torch.add(x, _1)
"""
    table = drawn(places, 4)
    script = net(forward, example("Float", 2, 8, 4), constants=(tensor("0", table),))
    model: Any = load(script.saved(tmp_path))
    for length in (8, 11, 5, 1):
        x = drawn(3, length, 4)
        actual = model(burn.tensor(x)).numpy()
        np.testing.assert_allclose(actual, x + table[:length], rtol=1e-6)


def test_an_extent_that_a_weight_fixes_is_not_open(tmp_path: Path) -> None:
    table, stored = weight("0", 8, 4)
    script = net(
        "return torch.add(x, CONSTANTS.c0)",
        example("Float", 2, 8, 4),
        constants=(stored,),
    )
    text = import_model(script.saved(tmp_path), Options(class_name="Net")).text
    assert 'x="float32[batch, 8, 4]"' in text.replace("'", '"')


@pytest.mark.parametrize(
    "shape", [{}, {"words": ("n", "length"), "video": ("n", 8, 4)}]
)
def test_frames_are_no_words_where_a_trace_has_as_many(
    tmp_path: Path, shape: dict[str, Any]
) -> None:
    scale, stored = weight("0", 8, 4)
    forward = """
_0 = torch.sum(torch.mul(video, CONSTANTS.c0), [1, 2], True)
return torch.add(torch.cumsum(words, 1), torch.select(_0, 2, 0))
"""
    inputs = example("Float", 2, 8), example("Float", 2, 8, 4)
    parameters = "words: Tensor,\n    video: Tensor"
    script = net(forward, *inputs, parameters=parameters, constants=(stored,))
    model: Any = load(script.saved(tmp_path), Options(shapes=shape))
    for batch, length in ((2, 8), (5, 11), (3, 20)):
        words, video = drawn(batch, length), drawn(batch, 8, 4)
        sums = (video * scale).sum((1, 2))[:, None]
        actual = model(burn.tensor(words), burn.tensor(video)).numpy()
        np.testing.assert_allclose(actual, words.cumsum(1) + sums, rtol=1e-4, atol=1e-5)


def test_constants_without_axes_adapt_as_numbers_do(tmp_path: Path) -> None:
    """PyTorch treats them as Python numbers, unless detached."""
    forward = """
_0 = torch.mul(x, CONSTANTS.c0)
_1 = torch.mul(x, torch.detach(torch.to(CONSTANTS.c0, 7)))
_2 = torch.add(torch.to(x, 3), CONSTANTS.c1)
_3 = torch.mul(x, CONSTANTS.c2)
return (_0, _1, _2, _3)
"""
    arrays = np.array(2.5), np.array(3), np.array([2.5])
    constants = tuple(tensor(str(n), array) for n, array in enumerate(arrays))
    script = net(forward, example("Long", 4), constants=constants)
    model: Any = load(script.saved(tmp_path))
    x = np.arange(4)
    actual = [result.numpy() for result in model(burn.tensor(x))]
    names = ["float32", "float64", "int32", "float64"]
    assert [result.dtype.name for result in actual] == names
    for result, expected in zip(
        actual, (x * 2.5, x * 2.5, x + 3, x * 2.5), strict=True
    ):
        np.testing.assert_allclose(result, expected)


def test_where_of_numbers_and_shapes_as_tensors(tmp_path: Path) -> None:
    forward = """
_0 = torch.to(torch.where(torch.gt(x, 0), 2, 0), torch.device("cpu"), 3)
rows, columns, = torch.where(torch.gt(x, 0))
_1 = torch.randn([2, 3], generator=None, dtype=6, layout=None, device=None)
_2 = torch.mul(torch._shape_as_tensor(_1), 2)
return (_0, rows, columns, _2)
"""
    model: Any = load(net(forward, example("Float", 3, 4)).saved(tmp_path))
    x = drawn(3, 4)
    actual = [result.numpy() for result in model(burn.tensor(x))]
    expected = [np.where(x > 0, 2, 0).astype(np.int32), *np.nonzero(x > 0), [4, 6]]
    for result, array in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(result, array)
    assert actual[0].dtype == np.int32


@pytest.mark.parametrize("name", ["class", "None", "lambda"])
def test_attributes_that_are_called_as_keywords(name: str, tmp_path: Path) -> None:
    (array, w), (bias, b) = weight("0", 4, 4), weight("1", 4, seed=1)
    linear = "torch.nn.modules.linear.Linear"
    parts: dict[str, Any] = {name: module(linear, weight=w, bias=b)}
    script = net(f"first = self.{name}\nreturn (first).forward(x, )", **parts)
    field = f"  training : bool\n  {name} : __torch__.{linear}\n"
    script.code["__torch__.py"] = script.code["__torch__.py"].replace(
        "  training : bool\n", field
    )
    script.code["__torch__/torch/nn/modules/linear.py"] = LINEAR
    options = Options(shapes={"x": ("batch", 4)})
    model: Any = load(script.saved(tmp_path), options)
    x = drawn(3, 4)
    actual = model(burn.tensor(x)).numpy()
    np.testing.assert_allclose(actual, x @ array.T + bias, rtol=1e-5, atol=1e-6)
    assert set(model.state_dict()) == {f"{name}.weight", f"{name}.bias"}


def test_floats_are_not_written_into_integers(tmp_path: Path) -> None:
    code = """state = torch.full([3], 10000000000)
mask = annotate(List[Optional[Tensor]], [torch.lt(x, 0.)])
return torch.index_put_(state, mask, torch.index(x, mask))"""
    script = net(code, example("Float", 3))
    with pytest.raises(InvalidModel, match="expected values of int64, got float32"):
        read(script.saved(tmp_path))
