"""Precision of convolutions and layers of float32 tensors in TensorFloat-32."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from tests.runtime.onednn import normal

pytestmark = pytest.mark.cuda
#: Relative to the largest element: TensorFloat-32 keeps eleven bits.
TOLERANCE = 2e-3
#: Above the largest float16 number, 65504, and below its smallest, 6e-8.
SCALES = (1e6, 1e-9)
#: Images, output channels, taps and stride: stems, bottlenecks, squeezed channels.
CASES = (
    ((1, 3, 64, 64), 32, 3, 2),
    ((8, 3, 64, 64), 16, 7, 2),
    ((1, 16, 56, 56), 96, 1, 1),
    ((8, 96, 28, 28), 24, 1, 1),
    ((64, 64, 14, 14), 64, 3, 1),
    ((8, 64, 14, 14), 128, 3, 2),
    ((8, 48, 1, 1), 10, 1, 1),
    ((2, 20, 9, 7), 12, 5, 1),
)


@pytest.fixture
def device() -> Iterator[burn.Cuda]:
    pytest.importorskip("cupy")
    device = burn.Cuda(0)
    before, device.tf32 = device.tf32, True
    yield device
    device.tf32 = before


@pytest.mark.parametrize("after", ((), (("relu",),)), ids=str)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_plans_keep_the_range_of_float32(
    case: Any, scale: float, after: Any, device: burn.Cuda
) -> None:
    from burn.backend.cuda.kernels.convolution import fused_convolution
    from burn.backend.cuda.kernels.convolution.convolution import Geometry

    shape, channels, taps, stride = case
    image = normal(*shape, seed=0) * np.float32(scale)
    weight = normal(channels, shape[1], taps, taps, seed=1)
    steps: Any = {"stride": stride, "padding": taps // 2}
    tensors = burn.from_numpy(image), burn.from_numpy(weight)
    expected = ops.conv(*tensors, **steps).numpy()
    expected = np.maximum(expected, 0) if after else expected
    windows = ((stride,) * 2, (taps // 2,) * 2, (1, 1))
    geometry = Geometry(shape, weight.shape, expected.shape, *windows)
    graph = fused_convolution._built(
        0, image.dtype, geometry, False, after, ("test", scale)
    )
    assert graph is not None and graph._plans
    arrays = [burn.from_numpy(a, device).data for a in (image, weight)]
    arrays = [graph.layout.of(array) for array in arrays]
    for plan in graph._plans:
        out = graph.layout.empty(expected.shape, image.dtype)
        graph._run((*arrays, out), plan)
        error = np.abs(out.get() - expected).max() / np.abs(expected).max()
        assert error <= TOLERANCE, graph.graph.get_plan_name_at_index(plan)


@pytest.mark.parametrize("extent", (7, 56))
@pytest.mark.parametrize("taps", (1, 3))
@pytest.mark.parametrize("name", ("silu", "sigmoid", "gelu", "gelu_tanh", "relu"))
def test_activations_in_float32(
    name: str, taps: int, extent: int, device: burn.Cuda
) -> None:
    """The products are exact in TensorFloat-32, so the activations must be too.

    Engines of cuDNN may compute ``tanh`` with an absolute error of 5e-6.
    """
    image = np.round(normal(4, 32, extent, extent, seed=0) * 64) / 64
    weight = np.zeros((32, 32, taps, taps), np.float32)
    weight[range(32), range(32), taps // 2, taps // 2] = 1

    def activated(x: Any) -> Any:
        if name == "gelu_tanh":
            return ops.gelu(x, approximate="tanh")
        return getattr(ops, name)(x)

    @burn.compile
    def layer(x: Any, w: Any) -> Any:
        return activated(ops.conv(x, w, padding=taps // 2))

    expected = activated(burn.from_numpy(image)).numpy()
    for _ in range(3):
        out = layer(*(burn.from_numpy(a, device) for a in (image, weight))).numpy()
        atol = 1e-5 if name == "gelu_tanh" else 1e-6
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=atol)


@pytest.mark.parametrize("tf32", (False, True))
@pytest.mark.parametrize("rows", (1, 8, 640))
@pytest.mark.parametrize("name", ("gelu_tanh", "gelu", "silu", "relu"))
def test_activations_of_layers_in_float32(
    name: str, rows: int, tf32: bool, device: burn.Cuda
) -> None:
    """As those of convolutions: the weight is the identity."""
    device.tf32 = tf32  # the fixture restores it
    x = np.round(normal(rows, 64, seed=0) * 64) / 64
    kind, options = (name[:4], {"approximate": "tanh"} if "tanh" in name else {})

    @burn.compile
    def layer(x: Any, w: Any) -> Any:
        return getattr(ops, kind)(ops.linear(x, w), **options)

    expected = getattr(ops, kind)(burn.from_numpy(x), **options).numpy()
    weight = burn.from_numpy(np.eye(64, dtype=np.float32), device)
    # cuBLASLt has an approximation of GELU, which is taken in TensorFloat-32.
    atol = 1e-5 if tf32 else 1e-6
    for _ in range(3):
        out = layer(burn.from_numpy(x, device), weight).numpy()
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=atol)
