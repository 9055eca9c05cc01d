"""Third-party models with fewer bits: close to what they compute in float32.

Several exports of one architecture, whose products are the same, take turns: one has
bfloat16, the next int8.
"""

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import dtypes
from tests.modules import Array
from tests.written_modules import Modules
from tests.zoo.recorded import Case, given
from tests.zoo.test_compiled import architectures, leaves, unchecked

pytestmark = pytest.mark.models

#: The size of the differences by that of the result, at most.
MOST = {"bf16": 0.05, "int8": 0.1}
#: Models whose results jump with what they are computed from, and why.
JUMPING = {
    "arch/detector_matrix_nms": "boxes are sorted by their scores",
    "arch/spatial_transformer": "an image is read at computed places",
    "arch/sam_mask_decoder": "sines of coordinates; 0.04 or 0.07 by the processor",
}


def turns(zoo: Path) -> Iterator[object]:
    """Return the files and precisions; those out of turn are marked ``nightly``."""
    for _, group in groupby(architectures(zoo), attrgetter("architecture")):
        exports = list(group)
        for number, case in enumerate(exports):
            both = len(exports) == 1 or case.architecture in JUMPING
            for position, precision in enumerate(MOST):
                alike = not both and position != number % len(MOST)
                marks = [pytest.mark.nightly] * alike
                name = f"{case.name}-{precision}"
                yield pytest.param(case, precision, id=name, marks=marks)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Return nothing; one test for each file and precision."""
    zoo: Path = metafunc.config.getoption("--zoo")
    none = [pytest.param(None, "", marks=unchecked(zoo))]
    metafunc.parametrize(("case", "precision"), list(turns(zoo)) or none)


@pytest.mark.sampled(12)
def test_results_are_close(case: Case, precision: str, modules: Modules) -> None:
    model = modules.load(case.path)
    inputs = [[given(value) for value in golden.read()[0]] for golden in case.goldens]
    samples = [tuple(arguments) for arguments in inputs]
    try:
        compiled = burn.compile(
            model,
            precision=precision,
            calibration=samples if precision == "int8" else (),
        )
    except ValueError as error:
        assert "cannot be calibrated" in str(error)
        assert "sets boxes" in str(error) or is_without_layers(model, samples)
        return
    most = MOST[precision]
    if case.architecture in JUMPING:
        most = 0.5
    for arguments in inputs:
        result, expected = leaves(compiled(*arguments)), leaves(model(*arguments))
        for one, other in zip(result, expected, strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            if dtypes.is_float(other.dtype) and not case.random:
                assert noise(one.numpy(), other.numpy()) <= most


def is_without_layers(model: Any, samples: list[tuple[Any, ...]]) -> bool:
    """Return whether a model has nothing that could be of integers."""
    names = burn.compile(model)
    for sample in samples:
        names(*sample)
    steps = [str(plan.root) for plan in names._plans.values()]
    return not any("conv" in text or "linear" in text for text in steps)


def noise(result: Array, expected: Array) -> float:
    """The size of the difference, by that of what is expected, where it is finite."""
    finite = np.isfinite(expected)
    wanted = expected[finite].astype(np.float64)
    size = float(np.linalg.norm(wanted))
    return float(np.linalg.norm(result[finite] - wanted)) / max(size, 1e-6)
