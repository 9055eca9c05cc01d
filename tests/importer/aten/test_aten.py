"""Every ATen operator with a rule computes NumPy's results, at two sizes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from burn_ir.types import Array
from tests.importer.aten import families
from tests.importer.aten.case import SIZES, Case, as_pairs
from tests.importer.aten.programs import written
from tests.importer.exported_files import saved


@pytest.mark.parametrize("case", families.CASES, ids=lambda case: case.name)
def test_an_operator_computes_what_it_says(case: Case, tmp_path: Path) -> None:
    model: Any = load(saved(tmp_path, written(case), {}))
    for size in SIZES if case.varies else SIZES[:1]:
        arrays = case.arrays(size)
        result = model(*(burn.tensor(as_pairs(array)) for array in arrays))
        several = result if isinstance(result, tuple) else (result,)
        results = [np.asarray(x.numpy()) for x in several]
        compare(case, results, case.results(arrays))


def compare(case: Case, actual: list[Array], expected: list[Array]) -> None:
    """Return if results equal the expected ones, including dtypes and shapes."""
    actual, expected = list(map(as_pairs, actual)), list(map(as_pairs, expected))
    assert [(x.dtype, x.shape) for x in actual] == [
        (x.dtype, x.shape) for x in expected
    ], case.name
    for a, b in zip(actual, expected, strict=True):
        if a.dtype.kind not in "iub":
            a, b = a.astype(np.float64), b.astype(np.float64)
        np.testing.assert_allclose(a, b, case.tolerance, case.tolerance)


def test_names_of_cases_are_unique() -> None:
    names = [case.name for case in families.CASES]
    assert len(set(names)) == len(names)
