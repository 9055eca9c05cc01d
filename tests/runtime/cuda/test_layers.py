"""The kernels of layers on a CUDA device agree with those of the host."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from tests.runtime.onnx_node import normal

pytestmark = pytest.mark.cuda

POOL: Any = {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}
IMAGE = (2, 4, 9, 7)
# A primitive, the shapes of its operands, its attributes.
CASES: list[Any] = [
    (ops.conv, (IMAGE, (6, 2, 3, 2), (6,)), {"padding": 1, "groups": 2}),
    (ops.conv, ((2, 70, 9, 7), (70, 1, 3, 2), (70,)), {"stride": 2, "groups": 70}),
    (ops.conv, ((1, 40, 4, 3), (50, 40, 3, 2)), {"dilation": (1, 2)}),
    (ops.conv_transpose, (IMAGE, (4, 6, 3, 2), (6,)), {"stride": 2, "padding": 1}),
    (ops.conv_transpose, ((2, 70, 5, 4), (70, 1, 3, 2)), {"groups": 70}),
    (ops.max_pool, (IMAGE,), POOL),
    (ops.max_pool_with_indices, (IMAGE,), POOL),
    (ops.avg_pool, (IMAGE,), POOL),
    (ops.lp_pool, (IMAGE,), POOL),
    (ops.adaptive_avg_pool, (IMAGE,), {"output_size": (4, 3)}),
    (ops.adaptive_max_pool, (IMAGE,), {"output_size": (4, 3)}),
    (ops.adaptive_max_pool_with_indices, (IMAGE,), {"output_size": (3, 3)}),
    (ops.batch_norm_train, (IMAGE, (4,), (4,)), {}),
    (ops.layer_norm, (IMAGE, (9, 7), (7,)), {"axis": 2}),
    (ops.rms_norm, (IMAGE, (7,)), {}),
    (ops.group_norm, (IMAGE, (4,), (4,)), {"groups": 2}),
    (ops.instance_norm, (IMAGE, (4,), (4,)), {}),
    (ops.lrn, (IMAGE,), {"size": 3}),
    (ops.prelu, (IMAGE, (4, 1, 1)), {}),
    (ops.clip, (IMAGE, ()), {}),
    (ops.logsumexp, (IMAGE,), {}),
    *((fn, (IMAGE,), {}) for fn in (ops.relu, ops.leaky_relu, ops.elu, ops.selu)),
    *((fn, (IMAGE,), {}) for fn in (ops.celu, ops.thresholded_relu, ops.sigmoid)),
    *((fn, (IMAGE,), {}) for fn in (ops.tanh, ops.softplus, ops.softsign, ops.mish)),
    *((fn, (IMAGE,), {}) for fn in (ops.hard_sigmoid, ops.hard_swish, ops.silu)),
    *((fn, (IMAGE,), {}) for fn in (ops.gelu, ops.shrink, ops.softmax)),
    *((fn, (IMAGE,), {}) for fn in (ops.log_softmax,)),
]
TOLERANCE = {"float16": 3e-2, "float32": 1e-3, "float64": 1e-9}


def results(case: Any, dtype: str, device: Any) -> list[Any]:
    """The results, and the gradients of the sum of the first one's squares."""
    fn, shapes, static = case
    tape = burn.Autodiff(device)
    leaves = [
        (
            burn.from_numpy(normal(*shape, seed=i).astype(dtype), tape).require_grad()
            if shape
            else burn.from_numpy(np.array(-0.25, dtype), tape).require_grad()
        )
        for i, shape in enumerate(shapes)
    ]
    outs = fn(*leaves, **static)
    outs = outs if isinstance(outs, tuple) else (outs,)
    grads = (outs[0] * outs[0]).sum().backward()
    return [*(out.numpy() for out in outs), *(grads[x].numpy() for x in leaves)]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].name)
def test_the_device_agrees_with_the_host(case: Any, dtype: str) -> None:
    pytest.importorskip("cupy")
    result = results(case, dtype, burn.Cuda(0))
    tol = TOLERANCE[dtype]
    for part, value in zip(result, results(case, dtype, burn.Cpu()), strict=True):
        assert part.dtype == value.dtype
        np.testing.assert_allclose(part, value, rtol=tol, atol=10 * tol)
