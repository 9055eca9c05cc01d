"""Resampling in plans is NumPy's, by products of matrices."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.backend.cpu.onednn.binding import engine
from tests.runtime.onednn import assert_close, needs_onednn, normal

pytestmark = needs_onednn

SCALES = {"scales": (1.0, 1.0, 1.7, 2.3)}
MODES: dict[str, dict[str, Any]] = {
    "linear": {**SCALES, "mode": "linear"},
    "corners": {
        "sizes": (2, 3, 10, 21),
        "mode": "linear",
        "coordinate_transformation_mode": "pytorch_align_corners",
    },
    "one axis": {"sizes": [9], "axes": (2,), "mode": "linear"},
    "cubic": {**SCALES, "mode": "cubic", "cubic_coeff_a": -0.5},
    "antialias": {"scales": (1.0, 1.0, 0.4, 0.6), "mode": "cubic", "antialias": True},
    "outside": {**SCALES, "mode": "cubic", "exclude_outside": True},
    "channels": {"sizes": (2, 5, 4, 3), "mode": "linear"},
}
LAYOUTS = {"row-major": (0, 1, 2, 3), "channels last": (0, 3, 1, 2)}


def compiled(function: Any, x: Any) -> tuple[Any, list[str]]:
    """The result of a plan, and the primitives that it was made of."""
    session = engine.current()
    assert session is not None
    session.primitives.clear()
    plan = burn.compile(function)
    for _ in range(3):
        result = plan(burn.tensor(x)).numpy()
    return result, session.primitives.implementations()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", MODES)
def test_resize(name: str, layout: str) -> None:
    axes = LAYOUTS[layout]
    x = np.ascontiguousarray(normal(2, 3, 5, 7).transpose(np.argsort(axes)))

    def run(x: Any) -> Any:
        return ops.resize(ops.permute(x, axes), **MODES[name])

    actual, used = compiled(run, x)
    assert_close(actual, run(burn.tensor(x)).numpy())
    assert used


def test_gradient() -> None:
    x, tape = normal(2, 3, 5, 7), burn.Autodiff(burn.Cpu())
    start = burn.from_numpy(normal(3, 1, 1, seed=1), tape).require_grad()

    def run(x: Any) -> Any:
        result = ops.resize(x.to(tape) * start, **MODES["linear"])
        return (result * result).sum().backward()[start]

    actual, _ = compiled(run, x)
    assert_close(actual, run(burn.tensor(x)).numpy())


@pytest.mark.parametrize(
    "options",
    [
        {**SCALES, "mode": "nearest"},
        {
            "sizes": (2, 3, 8, 9),
            "roi": np.array([0, 0, 0.2, 0.1, 1, 1, 0.9, 1.2]),
            "mode": "linear",
            "coordinate_transformation_mode": "tf_crop_and_resize",
            "extrapolation_value": 4.0,
        },
        {"sizes": (2, 3, 260, 9), "mode": "linear"},
    ],
    ids=["nearest", "crop", "long"],
)
def test_what_numpy_does_in_plans(options: Any) -> None:
    x = normal(2, 3, 130, 7)

    def run(x: Any) -> Any:
        return ops.resize(x, **options)

    actual, used = compiled(run, x)
    assert not used
    np.testing.assert_array_equal(actual, run(burn.tensor(x)).numpy())


def test_an_infinite_number_stays_where_it_is() -> None:
    x = normal(2, 3, 5, 7)
    plan = burn.compile(lambda x: ops.resize(x, **MODES["corners"]))
    for _ in range(3):
        plan(burn.tensor(x))
    x[1, 2, 0, 6] = np.inf
    expected = ops.resize(burn.tensor(x), **MODES["corners"]).numpy()
    actual = plan(burn.tensor(x)).numpy()
    finite = np.isfinite(expected)
    assert 0 < finite.sum() < finite.size
    np.testing.assert_array_equal(np.isfinite(actual), finite)
    np.testing.assert_allclose(actual[finite], expected[finite], rtol=1e-5)


def test_sizes_may_change_from_run_to_run() -> None:
    plan = burn.compile(lambda x, size: ops.resize(x, sizes=size, mode="linear"))
    x = burn.tensor(normal(2, 3, 5, 7))
    for sizes in ([2, 3, 8, 9], [2, 3, 4, 11], [2, 3, 8, 9]):
        size = burn.tensor(np.array(sizes))
        expected = ops.resize(x, sizes=sizes, mode="linear").numpy()
        assert_close(plan(x, size).numpy(), expected)
