"""Precision of cuDNN's plans for convolutions of float32 tensors in TensorFloat-32."""

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


@pytest.mark.parametrize("after", ((), (("relu",),), (("silu",),)), ids=str)
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
    expected = activated(ops.conv2d(*tensors, **steps), after).numpy()
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


def activated(x: Any, after: Any) -> Any:
    for (name,) in after:
        x = getattr(ops, name)(x)
    return x
