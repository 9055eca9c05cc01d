"""Sums of products of which a factor is repeated are products of matrices in plans."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.backend.cpu.onednn.binding import engine
from tests.runtime.onednn import assert_close, normal
from tests.runtime.plan.fusion.test_fusion import left

#: Shapes of both factors, the axis, and whether it is a product of matrices then.
CASES: dict[str, tuple[Any, Any, Any, bool]] = {
    "of two": ((40, 6, 1), (6, 9), 1, True),
    "affine grid": ((44, 3, 1), (2, 1, 3, 2), -2, True),
    "pooling": ((3, 17, 1), (3, 17, 40), 1, True),
    "pooling of the other": ((3, 17, 40), (3, 17, 1), (1,), True),
    "vector": ((5, 7, 33), (33,), 2, True),
    "middle": ((4, 6, 9, 5), (4, 1, 9, 5), 2, False),
    "batch in the middle": ((2, 12, 3, 8, 1), (12, 1, 8, 7), 3, False),
    "many in a batch": ((3, 5, 11, 9, 1), (5, 1, 9, 12), -2, True),
    "summed first": ((9, 1, 8, 5), (9, 11, 1, 5), 0, True),
    "with axes of one": ((1, 30, 1, 8, 1), (1, 1, 8, 11), 3, True),
    "no factor is repeated": ((8, 9, 10), (8, 9, 10), 1, False),
    "the summed is repeated": ((8, 9, 10), (8, 1, 10), 1, False),
    "two are summed": ((8, 9, 10), (9, 10), (1, 2), False),
    "small": ((6, 3, 1), (3, 4), 1, False),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("numpy", [False, True])
def test_it_is_the_sum(name: str, numpy: bool) -> None:
    first, second, axis, joined = CASES[name]

    def model(x: Any, y: Any) -> Any:
        return ops.sum(ops.tanh(x) * ops.tanh(y), axis) + 1.0

    compiled = burn.compile(model)
    for seed in range(3):
        x, y = normal(*first, seed=seed), normal(*second, seed=seed + 9)
        given = (burn.from_numpy(x), burn.from_numpy(y))
        if numpy:
            with engine.numpy_only():
                found = compiled(*given)
        else:
            found = compiled(*given)
        expected = np.sum(np.tanh(x) * np.tanh(y), axis) + np.float32(1)
        assert_close(found.numpy(), expected)
    assert ("matmul" in left(compiled)) == joined
    assert ("sum" in left(compiled)) != joined


def test_what_stays() -> None:
    """The product is used twice, or the numbers are no float32."""

    def twice(x: Any, y: Any) -> Any:
        return ops.sum(z := ops.tanh(x) * ops.tanh(y), 1), z

    def once(x: Any, y: Any) -> Any:
        return ops.sum(ops.tanh(x) * ops.tanh(y), 1)

    arrays = [normal(30, 6, 1), normal(6, 20, seed=1)]
    doubles = [array.astype(np.float64) for array in arrays]
    for model, given in ((twice, arrays), (once, doubles)):
        compiled = burn.compile(model)
        tensors = [burn.from_numpy(array) for array in given]
        for _ in range(2):
            compiled(*tensors)
        assert left(compiled) == ["tanh", "tanh", "mul", "sum"]


def test_kept_axes() -> None:
    compiled = burn.compile(
        lambda x, y: ops.sum(ops.tanh(x) * ops.tanh(y), 1, keepdims=True)
    )
    x, y = normal(30, 6, 1), normal(6, 20, seed=1)
    for factor in (1, 2, 3):
        given = (burn.from_numpy(x * factor), burn.from_numpy(y))
        expected = np.sum(np.tanh(x * factor) * np.tanh(y), 1, keepdims=True)
        assert_close(compiled(*given).numpy(), expected)
    assert "matmul" in left(compiled)
