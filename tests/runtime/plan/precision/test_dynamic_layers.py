"""Plans of layers that quantize their input by its range: products of bytes."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, ops
from burn.backend.cpu.jit.policy import KernelPolicy, has_compiler, has_products
from burn.backend.cpu.onednn.binding import engine
from burn.dtypes import int8, uint8
from burn.plan.plan_ir import Step
from tests.runtime.onednn import needs_onednn, normal
from tests.runtime.programs import optimized

pytestmark = needs_onednn
has_kernel = has_compiler() and has_products(KernelPolicy.PROFITABLE)
has_bytes = engine.no_gain("int8") is None or has_kernel


def layer(seed: int = 0, **options: Any) -> nn.DynamicQuantizedLinear:
    """Return a layer from 8 to 6 with random weights, scales and zero points."""
    rng = np.random.default_rng(seed)
    module = nn.DynamicQuantizedLinear(8, 6, **options)
    limits = np.iinfo(module.weight.dtype)
    values = {"weight": rng.integers(limits.min, limits.max, (8, 6), limits.dtype)}
    each = module.scale.shape
    values["scale"] = np.asarray(rng.uniform(0.01, 0.02, each), np.float32)
    if module.zero_point is not None:
        values["zero_point"] = np.full(each, 77, limits.dtype)
    if module.bias is not None:
        values["bias"] = normal(6, seed=seed)
    state = {key: burn.from_numpy(value) for key, value in values.items()}
    return module.load_state_dict(state)


def primitives(compiled: Any) -> list[str]:
    steps = optimized(compiled).steps
    return [step.primitive.name for step in steps if isinstance(step, Step)]


def inputs(*shape: int) -> list[burn.Tensor]:
    """Inputs whose zero points are 0, 255 and between them."""
    x = np.abs(normal(*shape)) + 0.1
    return [burn.from_numpy(each) for each in (x, -x, normal(*shape, seed=3), 0 * x)]


def assert_equal_to_eager(function: Any, compiled: Any, *shape: int) -> None:
    for x in inputs(*shape) * 2:
        expected, actual = function(x).numpy(), compiled(x).numpy()
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(3, 8), (2, 3, 8), (1, 8), (0, 8)])
@pytest.mark.parametrize("weight_dtype", [int8, uint8])
@pytest.mark.parametrize("zero_point", [False, True])
def test_each_call_has_its_own_zero_point(
    shape: tuple[int, ...], weight_dtype: Any, zero_point: bool
) -> None:
    module = layer(weight_dtype=weight_dtype, zero_point=zero_point)
    compiled = burn.compile(module)
    assert_equal_to_eager(module, compiled, *shape)
    assert ("linear_of_integers" in primitives(compiled)) == has_bytes


def test_scales_of_channels_and_no_bias() -> None:
    module = layer(per_channel=True, bias=False)
    compiled = burn.compile(module)
    assert_equal_to_eager(module, compiled, 5, 8)
    assert ("linear_of_integers" in primitives(compiled)) == has_bytes


def test_layers_of_one_input_quantize_it_once() -> None:
    first, second = layer(), layer(1, weight_dtype=uint8)

    def function(x: Any) -> Any:
        return first(x) * second(x)

    compiled = burn.compile(function)
    assert_equal_to_eager(function, compiled, 4, 8)
    if has_bytes:
        assert primitives(compiled).count("quantize") == 1


def test_weights_that_are_set_between_calls() -> None:
    module = layer()
    compiled = burn.compile(module)
    assert_equal_to_eager(module, compiled, 4, 8)
    module.load_state_dict(layer(5).state_dict())
    assert_equal_to_eager(module, compiled, 4, 8)


@pytest.mark.parametrize("case", ["other zero point", "zero points of channels"])
def test_what_is_no_layer(case: str) -> None:
    module = layer(zero_point=True, per_channel=case == "zero points of channels")
    others = burn.from_numpy(np.array(3, np.uint8))

    def function(x: Any) -> Any:
        if case == "zero points of channels":
            return module(x)
        scale, shift = ops.quantization_range(x)
        integers = ops.quantize(x, scale, shift)
        total = ops.integer_matmul(integers, module.weight, others)
        return total.cast(burn.float32) * (scale * module.scale)

    compiled = burn.compile(function)
    assert_equal_to_eager(function, compiled, 4, 8)
    assert "linear_of_integers" not in primitives(compiled)
