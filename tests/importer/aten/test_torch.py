"""Every case against PyTorch: NumPy's formula, and a program it exports."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from tests.importer.aten import families
from tests.importer.aten.case import SIZES, Case, as_pairs
from tests.importer.aten.test_aten import compare
from tests.importer.aten.torch_programs import (
    arrays,
    called,
    exported,
    operator_of,
    tensor,
)

pytestmark = pytest.mark.torch
CASES = [case for case in families.CASES if case.target.startswith("aten.")]
if find_spec("torch") is None:
    pytest.skip(f"{3 * len(CASES)} cases: needs PyTorch", allow_module_level=True)
OF_DEVICES = ("aten.mm.dtype", "aten.bmm.dtype", "aten.addmm.dtype")
#: Operators that PyTorch decomposes with different results, or not at all.
WRONG = {
    "aten.multilabel_margin_loss.default": "what stands behind a -1 counts as class 0",
    "aten.transpose_.default": "PyTorch cannot decompose it",
    **{
        f"aten.linspace.{name}": "PyTorch cannot decompose it without a device"
        for name in ("Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor")
    },
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_formula_is_what_pytorch_computes(case: Case) -> None:
    for size in SIZES if case.varies else SIZES[:1]:
        given = case.arrays(size)
        expected = case.results(given)
        if operator_of(case) is None:
            pytest.skip("PyTorch has no such operator")
        if case.target in OF_DEVICES:
            pytest.skip("PyTorch cannot compute it on the CPU")
        compare(case, arrays(called(case)(*map(tensor, given))), expected)


#: Prefixes of operators without shape functions in PyTorch, which it cannot export.
UNEXPORTED = ("aten.fake_quantize", "aten.narrow.Tensor")


# test_aten.py computes every case by its rule; this exports the case, which is slow.
@pytest.mark.sampled(3)
@pytest.mark.parametrize("decomposed", [False, True], ids=["", "decomposed"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_program_of_pytorch_computes_the_same(
    case: Case, decomposed: bool, tmp_path: Path
) -> None:
    if decomposed and case.target in WRONG:
        pytest.skip(WRONG[case.target])
    if case.target.startswith(UNEXPORTED) or operator_of(case) is None:
        pytest.skip("PyTorch cannot export it")
    sample = case.arrays(SIZES[-1])
    path = tmp_path / "net.pt2"
    varies = exported(called(case), sample, path, case.varies, decomposed)
    model: Any = load(path)
    # Only first axes are exported as dynamic.
    others = any("n" in operand.dims[1:] for operand in case.inputs.values())
    for size in SIZES if varies and not others else SIZES[-1:]:
        given = case.arrays(size)
        result = model(*(burn.tensor(as_pairs(array)) for array in given))
        several = result if isinstance(result, tuple) else (result,)
        compare(case, [np.asarray(x.numpy()) for x in several], case.results(given))
