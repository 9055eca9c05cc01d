"""The page of operators is that of the declarations."""

import json

import onnx
import pytest

from tests.conformance.operators_page import PAGE, page
from tests.conformance.score import SCORE

STORED = json.loads(SCORE.read_text("utf-8"))


@pytest.mark.thorough
@pytest.mark.skipif(
    onnx.__version__ != STORED["onnx"], reason=f"was written with onnx {STORED['onnx']}"
)
def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "run the command that is named on it"


def test_the_score_counts_every_case_once() -> None:
    kinds = STORED["kinds"].values()
    assert STORED["total"] == [sum(count) for count in zip(*kinds, strict=True)]
