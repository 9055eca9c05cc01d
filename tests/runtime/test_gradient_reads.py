"""The law of declared reads: without the other values gradients have the same bits."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, ops
from burn.ops.caches import update_slice
from burn.primitive import Primitive, primitives

Array = np.ndarray[Any, Any]
Call = Callable[..., Any]

UNARY = (
    *("neg", "abs", "exp", "log", "sqrt", "reciprocal", "erf", "relu", "leaky_relu"),
    *("thresholded_relu", "sigmoid", "tanh", "softplus", "softsign", "hard_sigmoid"),
    *("hard_swish", "mish", "gelu", "shrink", "permute", "flatten", "squeeze", "sum"),
    *("mean", "flip", "softmax", "log_softmax", "cumsum", "layer_norm", "lgamma"),
    *("erfinv", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh"),
    *("acosh", "atanh", "expm1", "log1p"),
)
BINARY = (
    *("add", "sub", "mul", "div", "remainder", "fmod", "atan2", "matmul", "linear"),
    "prelu",
)
INDEX = burn.tensor(np.array([2, 0, 0]))
MASK = burn.tensor(np.eye(3, dtype=bool))
STATE = burn.tensor(np.array([42, 0], np.uint64))

#: Extents of the operands, and a call: all are tracked one by one.
Case = tuple[tuple[tuple[int, ...], ...], Call]
CASES: dict[str, Case] = {
    **{name: (((2, 3, 3),), getattr(ops, name)) for name in UNARY},
    **{name: (((2, 3, 3), (3, 3)), getattr(ops, name)) for name in BINARY},
    "cast": (((2, 3),), lambda x: ops.cast(x, dtype=burn.float64)),
    "expand": (((3, 1),), lambda x: ops.expand(x, (2, 3, 4))),
    "sum_to": (((2, 3, 4),), lambda x: ops.sum_to(x, shape=(3, 1))),
    "where": (((2, 1, 3), (3, 3)), lambda x, y: ops.where(MASK, x, y)),
    "clip": (((4, 4), (), (4,)), lambda x, low, high: ops.clip(x, low, high)),
    "reshape": (((2, 3, 3),), lambda x: ops.reshape(x, (3, 6))),
    "transpose": (((2, 3, 3),), lambda x: ops.transpose(x, 0, 2)),
    "unsqueeze": (((2, 3),), lambda x: ops.unsqueeze(x, 1)),
    "concat": (((2, 3), (2, 1), (2, 3)), lambda *xs: ops.concat(list(xs), 1)),
    "split": (((5, 3),), lambda x: ops.split(x, [1, 4])[1]),
    "chunk": (((5, 3),), lambda x: ops.chunk(x, 2)[0]),
    "getitem": (((3, 4),), lambda x: x[INDEX, 1:]),
    "slice": (((3, 4),), lambda x: ops.slice(x, [1, 0], [3, 4], None, [1, 2])),
    "take": (((4, 3),), lambda x: ops.take(x, INDEX)),
    "update_slice": (((5, 3), (2, 3)), lambda x, y: update_slice(x, y, INDEX[:1])),
    "gather_nd": (((4, 3),), lambda x: ops.gather_nd(x, ops.unsqueeze(INDEX, 1))),
    "pad": (((2, 3), ()), lambda x, y: ops.pad(x, [1, 0, 0, 2], y)),
    "tile": (((2, 3),), lambda x: ops.tile(x, (2, 1, 3))),
    "stack": (((2, 3), (2, 3)), lambda *xs: ops.stack(list(xs), 1)),
    "roll": (((2, 3),), lambda x: ops.roll(x, (1,), (1,))),
    "trilu": (((3, 3),), lambda x: ops.trilu(x, 1)),
    "reverse_sequence": (((4, 3),), lambda x: ops.reverse_sequence(x, INDEX)),
    "masked_softmax": (((3, 3),), lambda x: ops.masked_softmax(x)),
    "conv": (((2, 3, 5), (4, 3, 2), (4,)), ops.conv),
    "conv_transpose": (((2, 3, 5), (3, 4, 2), (4,)), ops.conv_transpose),
    "embedding": (((4, 3),), lambda x: ops.embedding(x, INDEX, padding_idx=2)),
    "topk": (((3, 5),), lambda x: ops.topk(x, 2)[0]),
    "fold": (((1, 6, 3),), lambda x: ops.fold(x, (4,), (2,))),
    "unfold": (((1, 3, 4),), lambda x: ops.unfold(x, (2,))),
    "fold_axis": (((2, 3, 2),), lambda x: ops.fold_axis(x, 6, axis=1, step=2)),
    "unfold_axis": (((2, 6),), lambda x: ops.unfold_axis(x, size=2, axis=1, step=2)),
    "max_pool": (((2, 3, 6),), lambda x: ops.max_pool(x, kernel_size=(2,))),
    "max_pool_with_indices": (
        ((2, 3, 6),),
        lambda x: ops.max_pool_with_indices(x, kernel_size=(2,))[0],
    ),
    "avg_pool": (((2, 3, 6),), lambda x: ops.avg_pool(x, kernel_size=(2,))),
    "window_sum": (((2, 3, 6),), lambda x: ops.window_sum(x, kernel_size=(2,))),
    "adaptive_avg_pool": (
        ((2, 3, 6),),
        lambda x: ops.adaptive_avg_pool(x, output_size=(4,)),
    ),
    "batch_norm": (((2, 3, 4), (3,), (3,), (3,), (3,)), ops.batch_norm),
    "batch_norm_train": (
        ((2, 3, 4), (3,), (3,)),
        lambda *xs: ops.batch_norm_train(*xs)[0],
    ),
    "group_norm": (((2, 4, 3), (4,), (4,)), lambda *xs: ops.group_norm(*xs, groups=2)),
    "dropout": (((3, 5),), lambda x: ops.dropout(x, STATE)[0]),
    "dropout_by_seed": (((3, 5),), lambda x: ops.dropout_by_seed(x, seed=1)[0]),
    "resize": (((1, 1, 3, 4),), lambda x: ops.resize(x, sizes=[1, 1, 5, 6])),
    "polygamma": (((3, 4),), lambda x: ops.polygamma(x, n=1)),
}


@contextmanager
def keeping_all_values(primitive: Primitive[..., Any]) -> Iterator[None]:
    reads, primitive.reads = primitive.reads, None
    try:
        yield
    finally:
        primitive.reads = reads


def gradient_of_operand(call: Call, operands: list[Array], position: int) -> Array:
    """Return the gradient of one operand; the others are constants."""
    tensors = [burn.from_numpy(array) for array in operands]
    leaf = tensors[position].to(Autodiff(Cpu())).require_grad()
    result = call(*tensors[:position], leaf, *tensors[position + 1 :])
    seed = np.random.default_rng(1).standard_normal(result.shape).astype(result.dtype)
    gradient: Array = result.backward(burn.from_numpy(seed))[leaf].numpy()
    return gradient


@pytest.mark.parametrize("name", CASES)
def test_gradients_read_only_what_is_declared(name: str) -> None:
    extents, call = CASES[name]
    rng = np.random.default_rng(0)
    operands = [rng.uniform(0.1, 0.9, shape).astype(np.float32) for shape in extents]
    for position in range(len(operands)):
        actual = gradient_of_operand(call, operands, position)
        with keeping_all_values(primitives()[name]):
            expected = gradient_of_operand(call, operands, position)
        np.testing.assert_array_equal(actual, expected)


def test_every_declaration_has_a_case() -> None:
    declared = {name for name, each in primitives().items() if each.reads is not None}
    assert declared == set(CASES)
