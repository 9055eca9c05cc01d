"""Branches of which one never runs, as exporters write them for other ranks."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import burn
from burn_import import load
from burn_ir import InvalidModel

TEXT = """<ir_version: 9, opset_import: ["": 18]>
g (float[3] x) => (float[n] y) <int64 one = {RANK}> {
  s = SequenceConstruct (x, x)
  shape = Shape (x)
  rank = Size (shape)
  is_flat = Equal (rank, one)
  y = If (is_flat) <
    then_branch: graph = a () => (float[m] t) {
      t = ConcatFromSequence <axis: int = 0> (s) },
    else_branch: graph = b () => (float[p] e) {
      e = ConcatFromSequence <axis: int = 1> (s) }>
}"""


def saved(folder: Path, rank: int) -> Path:
    path = folder / "net.onnx"
    onnx.save(onnx.parser.parse_model(TEXT.replace("RANK", str(rank))), path)
    return path


def test_a_branch_for_another_rank_is_not_typed(tmp_path: Path) -> None:
    x = np.arange(3, dtype=np.float32)
    model: Any = load(saved(tmp_path, 1))
    np.testing.assert_array_equal(model(burn.tensor(x)).numpy(), [*x, *x])


def test_the_branch_that_runs_is_typed(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match="ConcatFromSequence.*an axis below 1"):
        load(saved(tmp_path, 2))
