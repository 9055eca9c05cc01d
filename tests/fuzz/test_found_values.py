"""Small graphs of wrong values, that random ones were shrunk to: they are right now."""

from typing import Any

import numpy as np
import pytest

from tests.fuzz.checks import report_of
from tests.fuzz.test_found import case_of, floats, header


def with_element(x: Any, index: tuple[int, ...], value: float) -> Any:
    """``x`` with ``value`` in one place."""
    result = x.copy()
    result[index] = value
    return result


#: The opset, the graph as text, finite inputs, and inputs that are not.
CASES: dict[str, tuple[int, str, dict[str, Any], dict[str, Any]]] = {
    "the determinant of a matrix with NaN whose elimination meets zeros": (
        23,
        "g (float[n,2,2] x) => (float[k] y) { y = Det (x) }",
        {"x": floats(3, 2, 2)},
        {"x": np.array([[[np.nan, 0], [0, 0]], [[0, np.nan], [0, 0]]], np.float32)},
    ),
    "scores of minus infinity that no mask hides": (
        22,
        """g (float[n,3,k,4] q, float[n,3,m,4] k, float[n,3,m,5] v)
          => (float[a,b,c,d] y)
        { t = Transpose <perm = [0, 1, 3, 2]> (k)
          p = MatMul (q, t)
          w = Softmax (p)
          y = MatMul (w, v) }""",
        {
            "q": floats(1, 3, 2, 4),
            "k": abs(floats(1, 3, 2, 4)),
            "v": floats(1, 3, 2, 5),
        },
        {
            "q": with_element(floats(1, 3, 2, 4), (0, 1, 1, 2), -np.inf),
            "k": abs(floats(1, 3, 2, 4)),
            "v": floats(1, 3, 2, 5),
        },
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_found(name: str) -> None:
    opset, text, finite, special = CASES[name]
    case = case_of(header(opset) + text, finite, finite, special)
    report = report_of(case, thorough=True)
    assert (report.kind, report.findings) == ("right", []), report.detail
