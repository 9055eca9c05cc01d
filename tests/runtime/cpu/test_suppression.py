"""Non-maximum suppression as a generated kernel."""

import gc
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.backend.cpu.jit.machine import machine

pytest.importorskip("llvmlite")

RNG = np.random.default_rng(5)


def boxes_of(images: int, count: int, dtype: Any) -> Any:
    """Boxes of which some are equal and some have swapped corners."""
    corner = RNG.uniform(0, 2, (images, count, 2))
    size = RNG.uniform(-0.5, 0.5, (images, count, 2))
    boxes = np.concatenate([corner, corner + size], -1).astype(dtype).round(1)
    boxes[:, count // 2 :] = boxes[:, : count - count // 2]
    return boxes


@pytest.mark.parametrize("is_centered", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "images, classes, count", [(1, 1, 1), (1, 3, 90), (3, 3, 3), (2, 1, 50)]
)
@pytest.mark.parametrize(
    "limit, overlap, threshold",
    [(0, 0.5, None), (1, 0.0, 0.3), (7, 0.5, None), (2**40, 0.25, 0.6), (9, 1.0, 2.0)],
)
def test_the_kernel_selects_the_boxes_of_numpy(
    images: int,
    classes: int,
    count: int,
    limit: int,
    overlap: float,
    threshold: float | None,
    dtype: Any,
    is_centered: bool,
) -> None:
    @burn.compile
    def suppress(boxes: burn.Tensor, scores: burn.Tensor) -> burn.Tensor:
        return ops.non_max_suppression(
            *(boxes, scores, limit, overlap, threshold), center_point_box=is_centered
        )

    boxes = boxes_of(images, count, dtype)
    scores = RNG.random((images, classes, count)).astype(np.float32).round(1)
    options = (limit, overlap, threshold)
    # The last ones have other numbers of results, and one is not a number.
    broken = boxes.copy()
    broken[0, 0, 1] = np.nan
    for given in (
        boxes,
        boxes,
        boxes[:, ::-1].copy(),
        broken,
        np.asfortranarray(boxes),
    ):
        expected = ops.non_max_suppression(
            *(given, scores, *options), center_point_box=is_centered
        ).numpy()
        actual = suppress(burn.from_numpy(given), burn.from_numpy(scores)).numpy()
        assert actual.dtype == expected.dtype == np.int64
        assert actual.tolist() == expected.tolist()


def test_plans_suppress_boxes_by_a_kernel() -> None:
    model = burn.compile(lambda b, s: ops.non_max_suppression(b, s, 9, 0.5))
    scores = burn.from_numpy(RNG.random((1, 2, 70)).astype(np.float32))
    profile = model.profile(burn.from_numpy(boxes_of(1, 70, np.float32)), scores)
    (step,) = profile.by_time
    assert step.primitives == ("non_max_suppression",)
    assert step.engines == ("LLVM",)


def test_boxes_of_other_types_are_numpys() -> None:
    model = burn.compile(lambda b, s: ops.non_max_suppression(b, s, 9, 0.5))
    boxes = burn.from_numpy(boxes_of(1, 70, np.float16))
    scores = burn.from_numpy(RNG.random((1, 2, 70)).astype(np.float32))
    first = model(boxes, scores).numpy().tolist()
    assert model(boxes, scores).numpy().tolist() == first
    assert first == ops.non_max_suppression(boxes, scores, 9, 0.5).numpy().tolist()


def test_plans_compile_anew_with_another_machine() -> None:
    """Code is not called after its machine is gone; only tests have several."""
    given = boxes_of(1, 70, np.float32), RNG.random((1, 2, 70)).astype(np.float32)
    model = burn.compile(lambda b, s: ops.non_max_suppression(b, s, 9, 0.5))
    tensors = [burn.from_numpy(array) for array in given]
    results = [model(*tensors).numpy().tolist() for _ in range(3)]
    machine.cache_clear()
    gc.collect()
    results += [model(*tensors).numpy().tolist() for _ in range(3)]
    assert results == [results[0]] * 6
