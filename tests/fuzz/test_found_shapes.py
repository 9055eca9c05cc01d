"""Small graphs of odd shapes that random ones were shrunk to, and ranks unknown."""

from typing import Any

import numpy as np
import pytest

from tests.fuzz.checks import report_of
from tests.fuzz.test_found import case_of, floats, header

CASES: dict[str, tuple[int, str, dict[str, Any]]] = {
    "rounds over the different elements of a constant": (
        11,
        """g (float[n,2] x) => (float[k,a,b] y) <int64[6] c = {1,1,0,0,3,3}> {
          u = Unique (c)
          y = Scan <num_scan_inputs = 1, scan_input_directions = [1],
            body = b (int64 r) => (float[l,m] v) { v = Neg (x) }> (u)
        }""",
        {"x": floats(3, 2)},
    ),
    "a convolution without channels": (
        9,
        """g (float[5,0,1] x, float[5,0,1] w) => (float[n,m,k] y)
        { y = Conv <auto_pad: string = "SAME_LOWER"> (x, w) }""",
        {"x": floats(5, 0, 1), "w": floats(5, 0, 1)},
    ),
    "a convolution without channels, and without those of the result": (
        9,
        """g (float[2,0,5] x, float[0,0,3] w) => (float[n,m,k] y)
        { y = Conv (x, w) }""",
        {"x": floats(2, 0, 5), "w": floats(0, 0, 3)},
    ),
    "halves that are cast back are rounded": (
        21,
        """g (float[n,m] x) => (float[k,l] y) {
          a = Cast <to: int = 10> (x)
          b = Tanh (a)
          y = Cast <to: int = 1> (b)
        }""",
        {"x": floats(6, 7)},
    ),
    "halves that are cast to the type of another value are rounded": (
        21,
        """g (float[n,m] x, int64[1] axes) => (float[k,l] y) {
          a = Cast <to: int = 10> (x)
          b = ReduceMean (a, axes)
          y = CastLike (b, x)
        }""",
        {"x": floats(6, 7), "axes": np.array([1])},
    ),
}
#: Operators that run on an item of a sequence, whose rank the file does not tell.
UNKNOWN: dict[str, tuple[str, tuple[int, ...]]] = {
    "average pooling": ("AveragePool <kernel_shape = [2, 2]> (x)", (1, 2, 3, 4)),
    "max pooling": ("MaxPool <kernel_shape = [2], ceil_mode = 1> (x)", (1, 2, 4)),
    "global average": ("GlobalAveragePool (x)", (2, 2, 3, 4)),
    "global maximum": ("GlobalMaxPool (x)", (2, 3, 5)),
    "global norm": ("GlobalLpPool <p = 3> (x)", (2, 2, 2, 3)),
    "a convolution by itself": ("Conv (x, x)", (2, 2, 3)),
    "a convolution whose padding is automatic": (
        'Conv <auto_pad = "SAME_UPPER", strides = [2, 2]> (x, x)',
        (2, 2, 3, 4),
    ),
    "a product with a transposed matrix": (
        "com.microsoft.FusedMatMul <transB = 1> (x, x)",
        (2, 3, 4),
    ),
    "a transposed convolution": ("ConvTranspose <strides = [2]> (x, x)", (2, 2, 3)),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_rank(name: str) -> None:
    node, shape = UNKNOWN[name]
    dims = ",".join("abcd"[: len(shape)])
    text = f"""g (seq(float[]) items) => (float[{dims}] y) <int64 first = {{0}}> {{
      x = SequenceAt (items, first)
      y = {node}
    }}"""
    feeds = {"items": [floats(*shape)]}
    report = report_of(case_of(header(20) + text, feeds), thorough=True)
    assert (report.kind, report.findings) == ("right", []), report.detail


@pytest.mark.parametrize("mask", [[2, 3], [2, 3, 0, 1]])
def test_counted_keys_of_a_batch_that_only_the_run_tells(mask: list[int]) -> None:
    text = """g (float[n,3,4] x, float[4,9] w, float[9] b, int32[m] mask)
      => (float[k,l,o] y)
      { y = com.microsoft.Attention <num_heads = 1> (x, w, b, mask) }"""
    feeds = {"x": floats(2, 3, 4), "w": floats(4, 9), "b": floats(9)}
    feeds["mask"] = np.array(mask, np.int32)
    report = report_of(case_of(header(17) + text, feeds), thorough=True)
    assert (report.kind, report.findings) == ("right", []), report.detail


@pytest.mark.parametrize("axis", [-1, -2, 1])
def test_statistics_of_an_unknown_rank(axis: int) -> None:
    extents = (2, 3, 4)[axis:]
    given = ",".join(map(str, extents))
    text = f"""g (seq(float[]) items, float[{given}] w)
      => (float[a,b,c] y, float[d,e,f] m, float[h,i,j] s) <int64 first = {{0}}> {{
      x = SequenceAt (items, first)
      y, m, s = LayerNormalization <axis = {axis}> (x, w)
    }}"""
    feeds = {"items": [floats(2, 3, 4)], "w": floats(*extents)}
    report = report_of(case_of(header(20) + text, feeds), thorough=True)
    assert (report.kind, report.findings) == ("right", []), report.detail


def test_statistics_of_channels_of_an_unknown_rank() -> None:
    text = """g (seq(float[]) items, seq(float[]) w) => (float[a,b,c] y)
    <int64 first = {0}> {
      x = SequenceAt (items, first)
      v = SequenceAt (w, first)
      y = BatchNormalization (x, v, v, v, v)
    }"""
    feeds = {"items": [floats(2, 3, 4)], "w": [abs(floats(3)) + 1]}
    report = report_of(case_of(header(20) + text, feeds), thorough=True)
    assert (report.kind, report.findings) == ("right", []), report.detail


@pytest.mark.parametrize("name", CASES)
def test_shapes(name: str) -> None:
    opset, text, feeds = CASES[name]
    report = report_of(case_of(header(opset) + text, feeds), thorough=True)
    assert (report.kind, report.findings) == ("right", []), report.detail
