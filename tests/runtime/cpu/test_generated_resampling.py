"""Resampling of lines is a generated kernel, with the results of NumPy."""

import platform
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import ops
from burn.backend.cpu.blas.resampling import sum_lines
from burn.backend.cpu.jit import machine as machines
from burn.backend.cpu.jit.images.resampling import resampling_kernel
from burn.backend.cpu.jit.machine import machine
from burn.backend.cpu.jit.operands import LEAST_LINE, ResamplingOperands
from burn.backend.cpu.jit.policy import MEASURED
from tests.runtime.onednn import assert_close, needs_onednn, normal
from tests.sampling import example_count

pytest.importorskip("llvmlite")
needs_measured = pytest.mark.skipif(
    platform.machine() not in MEASURED, reason="the kernels were not measured there"
)

CASES: dict[str, Any] = {
    "linear": {"scales": (1.0, 1.0, 1.7, 2.3), "mode": "linear"},
    "corners": {
        "sizes": (2, 12, 10, 21),
        "mode": "linear",
        "coordinate_transformation_mode": "align_corners",
    },
    "cubic": {"scales": (1.0, 1.0, 2.0, 1.5), "mode": "cubic"},
    "smaller": {"scales": (1.0, 1.0, 0.5, 0.4), "mode": "linear", "antialias": True},
    "one line": {"sizes": (2, 12, 1, 1), "mode": "linear"},
}


@settings(max_examples=example_count(60), deadline=None)
@given(
    batch=st.sampled_from([1, 3]),
    extent=st.integers(1, 9),
    results=st.integers(1, 70),
    taps=st.sampled_from([1, 2, 4, 7]),
    size=st.sampled_from([LEAST_LINE, 5, 8, 13, 16, 21, 40]),
    floats=st.sampled_from([4, 8, 16]),
)
def test_sums_of_lines(
    batch: int, extent: int, results: int, taps: int, size: int, floats: int
) -> None:
    random = np.random.default_rng(results)
    lines, weights = normal(batch, extent, size), normal(results, taps, seed=1)
    places = random.integers(0, extent, (results, taps))
    wanted, out = np.empty((2, batch, results, size), np.float32)
    sum_lines(ResamplingOperands(lines, places, weights, wanted))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machines.machine(), "floats", min(floats, machine().floats))
        kernel = resampling_kernel(ResamplingOperands(lines, places, weights, out))
    compiled = machine().call(kernel)  # it owns what the call reads
    compiled.call()
    assert_close(out, wanted)


@needs_onednn
@needs_measured
@pytest.mark.parametrize("is_last", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_plans(case: str, is_last: bool) -> None:
    shape = (2, 6, 7, 12) if is_last else (2, 12, 6, 7)

    def run(x: Any) -> Any:
        images = ops.permute(x, (0, 3, 1, 2)) if is_last else x
        return ops.resize(images * 2.0, **CASES[case])

    plan = burn.compile(run)
    for seed in range(4):  # the kernels replace NumPy's calls in the third
        x = burn.tensor(normal(*shape, seed=seed))
        assert_close(plan(x).numpy(), run(x).numpy())
    lines = str(plan.profile(x)).splitlines()
    (line,) = [line for line in lines if " resize " in line]
    assert "generated" in line
    assert "NumPy" not in line


@needs_onednn
@needs_measured
def test_an_infinite_number_stays_where_it_is() -> None:
    x = normal(1, 5, 7, 8)
    images = (0, 3, 1, 2)
    options = {"scales": (1.0, 1.0, 2.0, 2.0), "mode": "linear"}
    plan = burn.compile(lambda x: ops.resize(ops.permute(x, images), **options))
    for _ in range(3):
        plan(burn.tensor(x))
    x[0, 2, 0, 6] = np.inf
    expected = ops.resize(ops.permute(burn.tensor(x), images), **options).numpy()
    actual = plan(burn.tensor(x)).numpy()
    np.testing.assert_array_equal(np.isfinite(actual), np.isfinite(expected))
