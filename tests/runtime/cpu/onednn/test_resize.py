"""Resampling in plans without generated kernels is NumPy's, by products of matrices."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import ops
from burn.backend.cpu.onednn.binding import engine
from burn.backend.cpu.onednn.kernels import resize
from tests.runtime.onednn import assert_close, needs_onednn, normal
from tests.sampling import example_count

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
    plan = burn.compile(function, generated=False)
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


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("shape", "options", "axes"),
    [
        ((2, 21, 28, 28), {"sizes": (2, 21, 224, 56), "mode": "linear"}, 2),
        ((1, 24, 32, 40), {"scales": (1, 1, 2, 2), "mode": "cubic"}, 2),
        ((1, 24, 64, 48), {"scales": (1, 1, 0.5, 1.5), "mode": "linear"}, 2),
        ((1, 8, 160, 20), {"scales": (1, 1, 2, 1), "mode": "linear"}, 1),
        ((1, 40, 29, 31), {"scales": (1, 1, 2, 2), "mode": "linear"}, 0),
    ],
    ids=["linear", "cubic", "smaller", "long", "no divisor"],
)
def test_bands(
    monkeypatch: pytest.MonkeyPatch, layout: str, shape: Any, options: Any, axes: int
) -> None:
    seen: list[Any] = []
    apply_bands = resize._apply_bands

    def noted(notes: Any, bands: Any, rows: Any) -> Any:
        seen.append(bands)
        return apply_bands(notes, bands, rows)

    monkeypatch.setattr(resize, "_apply_bands", noted)
    order = LAYOUTS[layout]
    x = np.ascontiguousarray(normal(*shape).transpose(np.argsort(order)))

    def run(x: Any) -> Any:
        return ops.resize(ops.permute(x, order), **options)

    actual, used = compiled(run, x)
    assert_close(actual, run(burn.tensor(x)).numpy())
    assert used
    # Along the axis that is innermost in memory a product has the whole matrix.
    assert len(seen) == (axes if layout == "channels last" else min(axes, 1))


@settings(max_examples=example_count(60))
@given(extent=st.integers(1, 60), results=st.integers(1, 120), reach=st.integers(1, 4))
def test_bands_are_the_matrix(extent: int, results: int, reach: int) -> None:
    centers = (np.arange(results) * extent) // results
    matrix = np.zeros((results, extent), np.float32)
    for row, center in enumerate(centers):
        matrix[row, max(center - reach, 0) : center + reach] = 1 + row
    bands = resize._bands(matrix)
    if bands is None:
        return
    actual = np.zeros_like(matrix).reshape(len(bands.blocks), -1, extent)
    for block, part, start in zip(bands.blocks, actual, bands.starts, strict=True):
        part[:, start : start + block.shape[1]] = block
    np.testing.assert_array_equal(actual.reshape(matrix.shape), matrix)
    inside = bands.starts[bands.first : bands.last]
    assert inside == [inside[0] + bands.step * i for i in range(len(inside))]


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
