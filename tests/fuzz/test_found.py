"""Small graphs that random ones were shrunk to: all ways to run them are right now."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.fuzz.checks import report_of
from tests.fuzz.generator import FuzzCase
from tests.fuzz.report import model_of
from tests.fuzz.shrink import measured

FLOATS = np.random.default_rng(5).standard_normal(48).astype(np.float32)


def floats(*shape: int) -> Any:
    """Random numbers of a shape, the same in every call."""
    return FLOATS[: int(np.prod(shape))].reshape(shape)


def case_of(text: str, *feeds: Mapping[str, Any], profile: str = "mixed") -> FuzzCase:
    """The case of a model as text, with inputs for three runs or the same for all.

    Gradients by weights are compared as well in the profile "networks".
    """
    runs = [dict(one) for one in (*feeds, *feeds[:1] * 2)][:3]
    case = measured(FuzzCase(0, model_of(text), runs, {}, profile=profile))
    assert case is not None, "onnxruntime does not run it"
    return case


def header(opset: int) -> str:
    """The header of a model as text."""
    return f'<ir_version: 9, opset_import: ["" : {opset}, "com.microsoft" : 1]>\n'


CASES: dict[str, tuple[int, str, dict[str, Any]]] = {
    "stored boxes do not take the name of a method of modules": (
        18,
        """g (float[1,1,3] x) => (int64[n,m] y)
        <float[1,3,4] boxes001 = {0,0,1,1,0,0,1,0.9,2,2,3,3}, int64 most = {3}>
        { y = NonMaxSuppression (boxes001, x, most) }""",
        {"x": floats(1, 1, 3)},
    ),
    "a Transpose of an item of unknown rank turns all axes": (
        18,
        """g (seq(float[]) x) => (seq(float[]) y) {
          y = SequenceMap (x) <body = b (float[] i) => (float[] t) {
            t = Transpose (i)
          }>
        }""",
        {"x": [floats(2, 3), floats(4, 3)]},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_found(name: str) -> None:
    opset, text, feeds = CASES[name]
    report = report_of(case_of(header(opset) + text, feeds), thorough=True)
    assert (report.kind, report.findings) == ("right", []), report.detail
