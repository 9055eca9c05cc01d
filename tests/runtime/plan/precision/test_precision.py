"""Plans of fewer bits: close to float32, and as they were asked for."""

import gc
from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, ops
from burn.backend.cpu.onednn.binding import engine
from burn.dtypes import bfloat16, int8, uint8
from burn.plan.compiled import Compiled
from burn.plan.plan_ir import Step
from tests.runtime.onednn import needs_onednn, normal
from tests.runtime.programs import optimized, program_of

PRECISIONS = ["bf16", "int8"]


class Net(nn.Module):
    """Convolutions with a residual, pooling, a mean and layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1)
        self.second = nn.Conv2d(16, 16, 3, padding=1)
        self.last = nn.Conv2d(16, 24, 1)
        self.hidden, self.head = nn.Linear(24, 20), nn.Linear(20, 10)

    def __call__(self, x: Any) -> Any:
        x = ops.max_pool(ops.relu(self.first(x)), kernel_size=2, stride=2)
        x = ops.relu(self.second(x) + x)
        x = ops.mean(ops.relu(self.last(x)), (2, 3))
        return self.head(ops.gelu(self.hidden(x)))


def images(count: int = 2, seed: int = 0) -> Any:
    return burn.from_numpy(normal(count, 3, 12, 16, seed=seed))


def compiled(model: Any, precision: str, *samples: Any) -> Any:
    given = samples if precision == "int8" else ()
    return burn.compile(model, precision=precision, calibration=given)


def steps(function: Compiled[Any, Any]) -> list[tuple[str, Any]]:
    """The primitives that run in every call, and the dtypes of their results."""
    return [
        (step.primitive.name, step.dtypes[0])
        for step in optimized(function).steps
        if isinstance(step, Step)
    ]


def noise(actual: Any, expected: Any) -> float:
    """The size of the difference, by that of what is expected."""
    actual, expected = actual.numpy(), expected.numpy()
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    return float(np.linalg.norm(actual - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_results_are_close_and_always_the_same(precision: str) -> None:
    model, x = Net(), images()
    function = compiled(model, precision, x, images(seed=1))
    first, *others = (function(x).numpy() for _ in range(4))
    for other in others:
        np.testing.assert_array_equal(first, other)
    assert 0 < noise(function(x), model(x)) < 0.05
    y = images(seed=2)
    assert noise(function(y), model(y)) < 0.05


def test_what_is_of_bfloat16() -> None:
    model, x = Net(), images()
    function = burn.compile(model, precision="bf16")
    function(x)
    actual = [step for step in steps(function) if step[0] != "cast"]
    narrow = ["conv_then", "max_pool", "conv_then", "conv_then"]
    assert actual == [
        *((name, bfloat16) for name in narrow),
        ("mean", np.float32),
        ("linear_then", bfloat16),
        ("linear", bfloat16),
    ]


def test_what_is_of_integers() -> None:
    model, x = Net(), images()
    function = burn.compile(model, precision="int8", calibration=[x])
    function(x)
    actual = [
        (name, dtype)
        for name, dtype in steps(function)
        if name not in ("scale_of_weights", "quantize")
    ]
    assert actual == [
        ("to_integers", int8),
        ("conv_of_integers", uint8),
        ("max_pool", uint8),
        ("conv_of_integers", uint8),
        ("conv_of_integers", np.float32),
        ("mean", np.float32),
        ("to_integers", uint8),
        ("linear_of_integers", int8),
        ("linear_of_integers", np.float32),
    ]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_without_an_engine(precision: str) -> None:
    model, x = Net(), images()
    with engine.numpy_only():
        function = compiled(model, precision, x)
        assert 0 < noise(function(x), model(x)) < 0.05
        assert function.notes == [f"{precision} gains nothing: NumPy computes"]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_another_batch(precision: str) -> None:
    model = Net()
    function = compiled(model, precision, images(2))
    for count in (5, 1, 2):
        x = images(count, seed=3)
        function(x)
        assert 0 < noise(function(x), model(x)) < 0.05


@pytest.mark.parametrize("precision", PRECISIONS)
def test_weights_that_are_set(precision: str) -> None:
    model, x = Net(), images()
    function = compiled(model, precision, x)
    function(x)
    # The scales of activations are those of the calibration, so it may not grow.
    weight = model.head.weight
    weight.set(weight.value * -0.5)
    assert 0 < noise(function(x), model(x)) < 0.05


@pytest.mark.parametrize("precision", PRECISIONS)
def test_branches(precision: str) -> None:
    layers = [nn.Linear(8, 8) for _ in range(2)]

    def function(x: Any) -> Any:
        y = layers[0](x)
        if bool(ops.sum(x) > 0):
            return layers[1](ops.tanh(y))
        return y - layers[1](x)

    given = [burn.from_numpy(normal(4, 8, seed=1) + shift) for shift in (1, -1)]
    result = compiled(function, precision, *((x,) for x in given))
    for x in [*given, *given]:
        assert 0 < noise(result(x), function(x)) < 0.05


def test_scales_of_the_model() -> None:
    weight = np.clip(np.rint(normal(6, 4, 3, 3) * 40), -127, 127).astype(np.int8)
    boxes = {
        "weight": weight,
        "by": np.linspace(0.004, 0.008, 6).astype(np.float32),
        "scale": np.array(0.03, np.float32),
        "zero": np.array(120, np.uint8),
        "after": np.array(0.04, np.float32),
    }
    held = {name: burn.Buffer(burn.from_numpy(x)) for name, x in boxes.items()}

    def function(x: Any) -> Any:
        x = ops.quantize(x, held["scale"], held["zero"])
        x = ops.dequantize(x, held["scale"], held["zero"])
        y = ops.conv(x, ops.dequantize(held["weight"], held["by"], axis=0), padding=1)
        y = ops.quantize(ops.relu(y), held["after"])
        return ops.dequantize(y, held["after"])

    x = burn.from_numpy(normal(2, 4, 9, 7))
    built = burn.compile(function, precision="int8")
    built(x)
    names = [name for name, _ in steps(built)]
    assert names == ["to_integers", "conv_of_integers", "from_integers"]
    result, expected = built(x).numpy(), function(x).numpy()
    difference = np.abs(result - expected)
    assert difference.max() < 0.041
    assert np.mean(difference > 1e-6) < 0.02


class Quantized(nn.Module):
    """A residual block as tools for quantization write it."""

    def __init__(self) -> None:
        super().__init__()
        weights = [np.rint(normal(6, 6, 3, 3, seed=i) * 40) for i in range(2)]
        self.weights = [
            burn.Buffer(burn.from_numpy(np.clip(w, -127, 127).astype(np.int8)))
            for w in weights
        ]
        scales = np.linspace(0.004, 0.008, 6).astype(np.float32)
        self.by = burn.Buffer(burn.from_numpy(scales))
        steps = (0.03, 0.031, 0.04, 0.05)
        self.scales = [burn.tensor(np.array(step, np.float32)) for step in steps]

    def rounded(self, x: Any, number: int, zero_point: Any = None) -> Any:
        scale = self.scales[number]
        return ops.dequantize(ops.quantize(x, scale, zero_point), scale, zero_point)

    def conv(self, x: Any, number: int) -> Any:
        weight = ops.dequantize(self.weights[number], self.by, axis=0)
        return ops.conv(x, weight, padding=1)

    def __call__(self, x: Any) -> Any:
        x = self.rounded(x, 0, 120)
        x = self.rounded(ops.max_pool(x, kernel_size=3, padding=1), 0, 120)
        y = self.rounded(ops.relu(self.conv(x, 0)), 1)
        y = self.rounded(self.conv(y, 1), 2, 131)
        return self.rounded(ops.relu(y + x), 3)


def test_a_block_that_is_quantized() -> None:
    model, x = Quantized(), burn.from_numpy(normal(2, 6, 9, 7) * 2)
    built = burn.compile(model, precision="int8")
    built(x)
    names = [name for name, _ in steps(built) if name != "reshape"]
    layers = ["to_integers", "max_pool", "conv_of_integers", "conv_of_integers"]
    assert names == [*layers, "from_integers"]
    result, expected = built(x).numpy(), model(x).numpy()
    difference = np.abs(result - expected)
    assert difference.max() < 0.051
    assert np.mean(difference > 1e-6) < 0.25
    assert len(np.unique(expected)) > 40
    assert (model.conv(burn.from_numpy(expected), 1).numpy() > 0.04 * 124).any()


def test_products_with_weights_that_are_quantized_by_columns() -> None:
    weight = np.clip(np.rint(normal(12, 6) * 40), -127, 127).astype(np.int8)
    held = burn.Buffer(burn.from_numpy(weight))
    by = burn.Buffer(burn.from_numpy(np.linspace(0.004, 0.008, 6, dtype=np.float32)))
    scale = burn.Buffer(burn.from_numpy(np.array([0.03], np.float32)))

    def function(x: Any) -> Any:
        x = ops.dequantize(ops.quantize(x, scale, dtype=int8), scale)
        return x @ ops.dequantize(held, by, axis=1)

    x = burn.from_numpy(normal(5, 12))
    result = burn.compile(function, precision="int8")
    result(x)
    assert ("linear_of_integers", np.float32) in steps(result)
    assert noise(result(x), function(x)) < 1e-4


@pytest.mark.parametrize("is_read_twice", [False, True])
def test_moved_integers_are_operands_of_layers(is_read_twice: bool) -> None:
    weight = np.clip(np.rint(normal(4, 6) * 40), -127, 127).astype(np.int8)
    held = burn.Buffer(burn.from_numpy(weight))
    by = burn.Buffer(burn.from_numpy(np.linspace(0.004, 0.008, 4, dtype=np.float32)))
    scale = burn.Buffer(burn.from_numpy(np.array([0.03], np.float32)))

    def function(x: Any) -> Any:
        x = ops.dequantize(ops.quantize(x, scale, dtype=int8), scale)
        x = x.transpose(1, 2).flatten(2)
        y = ops.linear(x, ops.dequantize(held, by, axis=0))
        return y + ops.sum(x) if is_read_twice else y

    result = burn.compile(function, precision="int8")
    for seed in range(3):
        x = burn.from_numpy(normal(2, 2, 5, 3, seed=seed))
        assert noise(result(x), function(x)) < 1e-4
    assert ("linear_of_integers", np.float32) in steps(result)


def test_the_accuracy_is_that_of_the_examples() -> None:
    model, given = Net(), [images(seed=seed) for seed in range(3)]
    function = burn.compile(model, precision="int8", calibration=given)
    (accuracy,) = function.accuracy
    expected = [model(x).numpy() for x in given]
    pairs = zip(given, expected, strict=True)
    differences = [np.abs(function(x).numpy() - y) for x, y in pairs]
    assert accuracy.largest == pytest.approx(np.max(differences), rel=1e-3)
    assert accuracy.scale == pytest.approx(np.abs(expected).max(), rel=1e-3)
    power, noise = (np.square(x).sum() for x in (expected, differences))
    assert accuracy.decibels == pytest.approx(10 * np.log10(power / noise), rel=1e-3)
    assert 0 < accuracy.agreement <= 1
    assert str(accuracy).endswith("% of rows agree")


def test_what_is_refused() -> None:
    model, x = Net(), images()
    with pytest.raises(ValueError, match="'float32', 'bf16', 'int8': 'fp8'"):
        burn.compile(model, precision="fp8")
    with pytest.raises(ValueError, match="no calibration with precision 'bf16'"):
        burn.compile(model, precision="bf16", calibration=[x])
    with pytest.raises(TypeError, match="a tensor or a tuple of arguments, got list"):
        burn.compile(model, precision="int8", calibration=[[x]])
    with pytest.raises(ValueError, match="no layer with weights"):
        burn.compile(ops.tanh, precision="int8", calibration=[x])
    with pytest.raises(ValueError, match="calibrated: float32.* is read on the host"):
        burn.compile(lambda x: x.numpy().tolist(), precision="int8", calibration=[x])


def test_without_examples_and_scales_nothing_is_of_integers() -> None:
    model, x = Net(), images()
    function = burn.compile(model, precision="int8")
    np.testing.assert_allclose(function(x).numpy(), model(x).numpy(), rtol=1e-4)
    assert "int8 is not used: it has no layer for it, or none with scales" in (
        function.notes
    )


@needs_onednn
@pytest.mark.parametrize("precision", PRECISIONS)
def test_images_are_cast_and_turned_in_one_pass(precision: str) -> None:
    layer, x = nn.Conv2d(3, 8, 3), images()
    result = compiled(layer, precision, x)
    assert 0 < noise(result(x), layer(x)) < 0.05
    node = program_of(result)._node
    assert node is not None
    calls = node.sequence
    assert len(calls) == {"bf16": 3, "int8": 2}[precision]


@needs_onednn
@pytest.mark.parametrize("precision", PRECISIONS)
def test_weights_of_float32_are_not_kept_packed(precision: str) -> None:
    session = engine.current()
    assert session is not None
    model, x = Net(), images()
    gc.collect()
    before = session.packed.size()
    result = compiled(model, precision, x)
    for _ in range(3):
        result(x)
    gc.collect()
    assert session.packed.size() <= before
    assert noise(model(x), burn.compile(model)(x)) < 1e-5


def split(x: Any) -> Any:
    first, second = ops.split(x, (12, 20), 2)
    return ops.concat([second, first], 2)


CONSTANT = burn.from_numpy(normal(2, 5, 5))
#: What may stand between products, of [2, 5, 32] that is one.
BETWEEN: dict[str, Any] = {
    "gelu": ops.gelu,
    "sigmoid": ops.sigmoid,
    "silu": ops.silu,
    "tanh": ops.tanh,
    "relu": ops.relu,
    "softmax": ops.softmax,
    "softmax-1": lambda x: ops.softmax(x, axis=1),
    "norm": nn.LayerNorm(32),
    "spread": lambda x: x + ops.mean(x, -1, keepdims=True),
    "parts": split,
    "joined": lambda x: ops.concat([x, ops.tanh(x)], 2)[:, :, 7:39],
    "steps": lambda x: ops.concat([x[..., ::2], x[..., 1::2]], -1),
    "turned": lambda x: x.transpose(1, 2).reshape((2, 5, 32)),
    "permuted": lambda x: ops.permute(x, (2, 0, 1)).flatten(1).reshape((2, 5, 32)),
    "squeezed": lambda x: x.unsqueeze(1).squeeze(1),
    "pooled": lambda x: ops.avg_pool(x, kernel_size=3, padding=1),
    "largest": lambda x: ops.max_pool(x, kernel_size=3, padding=1),
    "constant": lambda x: ops.concat([CONSTANT[..., :2], x[..., 2:]], -1),
    "scores": lambda x: ops.softmax(x @ x.transpose(1, 2) * 0.2) @ x,
    "heads": lambda x: (
        (y := x.reshape((2, 5, 4, 8)).permute((0, 2, 1, 3))) @ y.transpose(2, 3) @ y
    )
    .permute((0, 2, 1, 3))
    .reshape((2, 5, 32)),
    "integers": lambda x: x
    * ops.cast(ops.argmax(x, -1, keepdims=True) >= 0, dtype=x.dtype),
}


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", BETWEEN)
def test_what_is_between_products(name: str, precision: str) -> None:
    layers = [nn.Linear(12, 32), nn.Linear(32, 7, bias=False)]

    def function(x: Any) -> Any:
        y = BETWEEN[name](layers[0](x))
        return layers[1](y), y

    x = burn.from_numpy(normal(2, 5, 12))
    result = compiled(function, precision, x)
    result(x)
    for actual, expected in zip(result(x), function(x), strict=True):
        assert noise(actual, expected) < 0.05


def test_a_result_that_is_used_in_both_precisions() -> None:
    layers = [nn.Linear(12, 32), nn.Linear(32, 32)]

    def function(x: Any) -> Any:
        y = layers[0](x)
        return layers[1](y), y, ops.exp(y)

    x = burn.from_numpy(normal(2, 5, 12))
    for precision in PRECISIONS:
        result = compiled(function, precision, x)
        result(x)
        for actual, expected in zip(result(x), function(x), strict=True):
            assert 0 < noise(actual, expected) < 0.05
