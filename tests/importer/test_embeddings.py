"""Lookups with padding, or divided by how often rows are read, keep their gradients."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn_import import load
from burn_import.pipeline import import_model
from burn_ir import InvalidModel
from tests.importer.script_files import Script, example, module, weight
from tests.modules import Array

TABLE, STORED = weight("0", 6, 3)
WORDS = np.array([[2, 0, 2], [5, 2, 0]])


def embedded(padding: int, divided: bool) -> Script:
    """Return a lookup in a stored table."""
    code = f"""class Net(Module):
  __parameters__ = ["table", ]
  __buffers__ = []
  table : Tensor
  training : bool
  def forward(self: __torch__.Net,
    x: Tensor) -> Tensor:
    table = self.table
    return torch.embedding(table, x, {padding}, {divided})
"""
    kind = module("Net", table=STORED)
    return Script(kind, {"__torch__.py": code}, [example("Long", 2, 3)])


def gradient(path: Path, compiled: bool) -> Array:
    """Return the gradient by the table of a weighted sum of all results."""
    model: Any = load(path)
    model.to(burn.Autodiff(burn.Cpu()))
    factor = np.arange(18, dtype=np.float32).reshape(2, 3, 3) + 1
    ((_, box),) = model.boxes()

    def call(words: burn.Tensor) -> burn.Tensor:
        return ops.sum(model(words) * factor).backward()[box]

    function: Any = burn.compile(call) if compiled else call
    result: Array = function(burn.tensor(WORDS)).numpy()
    return result


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("padding", [-1, 0, 2])
@pytest.mark.parametrize("divided", [False, True])
def test_gradients_of_tables(
    padding: int, divided: bool, compiled: bool, tmp_path: Path
) -> None:
    expected = np.zeros_like(TABLE)
    factor = np.arange(18, dtype=np.float32).reshape(2, 3, 3) + 1
    np.add.at(expected, WORDS, factor)
    if divided:
        counts = np.bincount(WORDS.ravel(), minlength=6)
        expected /= np.maximum(counts, 1)[:, None]
    if padding >= 0:
        expected[padding] = 0
    path = embedded(padding, divided).saved(tmp_path)
    np.testing.assert_allclose(gradient(path, compiled), expected, rtol=1e-6)


def test_the_source_says_the_padding(tmp_path: Path) -> None:
    text = import_model(embedded(0, True).saved(tmp_path)).text
    call = "ops.embedding(self.table, x, padding_idx=0, scale_grad_by_freq=True)"
    assert call in text


def test_a_layer_says_its_padding(tmp_path: Path) -> None:
    code = """class Words(Module):
  __parameters__ = ["weight", ]
  __buffers__ = []
  weight : Tensor
  def forward(self: __torch__.Words,
    x: Tensor) -> Tensor:
    weight = self.weight
    return torch.embedding(weight, x, 2)
class Net(Module):
  __parameters__ = []
  __buffers__ = []
  words : __torch__.Words
  def forward(self: __torch__.Net,
    x: Tensor) -> Tensor:
    words = self.words
    return torch.relu((words).forward(x, ))
"""
    root = module("Net", words=module("Words", weight=STORED))
    script = Script(root, {"__torch__.py": code}, [example("Long", 2, 3)])
    text = import_model(script.saved(tmp_path)).text
    assert "self.words = nn.Embedding(6, 3, padding_idx=2)" in text


def test_padding_beyond_the_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match="padding_idx below 6"):
        load(embedded(6, False).saved(tmp_path))
