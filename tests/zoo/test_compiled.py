"""Law 6 over third-party models: compiled they compute the same.

Of the exports of an architecture, whose steps are the same, one is compared, and all
with ``--nightly``.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import burn
from burn import dtypes
from tests.modules import Array
from tests.written_modules import Modules
from tests.zoo.known import REFUSED
from tests.zoo.recorded import Case, given, with_marks, zoo_cases

pytestmark = pytest.mark.models
#: How many models of the folder ``arch`` are compared.
COUNT = 159


def architectures(zoo: Path) -> Iterator[Case]:
    """Return the files of the folder ``arch`` that are imported."""
    if (zoo / "manifest.json").is_file():
        for case in zoo_cases(zoo):
            if case.name.startswith("arch/") and case.name not in REFUSED:
                yield case


def unchecked(zoo: Path) -> pytest.MarkDecorator:
    """Return the mark of a test without models."""
    reason = f"no models in {zoo.name}/ (see --zoo): {COUNT} not checked"
    return pytest.mark.skip(reason=reason)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Return nothing; one test for each file."""
    if "case" in metafunc.fixturenames:
        zoo: Path = metafunc.config.getoption("--zoo")
        cases = [
            pytest.param(case, id=case.name, marks=marks)
            for case, marks in with_marks(architectures(zoo))
        ]
        none = [pytest.param(None, marks=unchecked(zoo))]
        metafunc.parametrize("case", cases or none)


@pytest.mark.sampled(12)
def test_compiled_is_eager(case: Case, modules: Modules) -> None:
    """With and without a generated module for the plan, in first and second calls."""
    model = modules.load(case.path)
    compiled = [burn.compile(model, generated=option) for option in (False, True)]
    for golden in case.goldens:
        inputs = [given(value) for value in golden.read()[0]]
        expected = leaves(model(*inputs))
        for function in (*compiled, *compiled):
            actual = leaves(function(*inputs))
            if not case.random:
                assert_all_same(actual, expected)
    if not case.random:
        assert [function.notes for function in compiled] == [[], []]


def assert_all_same(actual: list[burn.Tensor], expected: list[burn.Tensor]) -> None:
    """Compare all tensors of two results."""
    assert [y.shape for y in actual] == [y.shape for y in expected]
    for got, wanted in zip(actual, expected, strict=True):
        assert_same(got.numpy(), wanted.numpy())


def assert_same(actual: Array, expected: Array) -> None:
    """But for the rounding of floats, by the size of the largest of them."""
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    if not dtypes.is_float(actual.dtype):
        np.testing.assert_array_equal(actual, expected)
        return
    finite = np.abs(expected[np.isfinite(expected)])
    scale = float(finite.max(initial=1e-6))
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5 * scale)


def leaves(value: object) -> list[burn.Tensor]:
    """The tensors of a result, in order."""
    if isinstance(value, burn.Tensor):
        return [value]
    items = value if isinstance(value, list | tuple) else []
    return [leaf for item in items for leaf in leaves(item)]
