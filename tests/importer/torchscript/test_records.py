"""NamedTuples in the code of archives, packed sequences among them."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from burn_import.frontends.torchscript import read
from burn_import.options import Options
from burn_ir import InvalidModel
from tests.importer.script_files import Script, example, net

X = np.random.default_rng(1).normal(size=(2, 3)).astype(np.float32)
PAIR = """
class Pair(NamedTuple):
  first : Tensor
  second : Tensor
"""


def records(forward: str) -> Script:
    """Return the archive of a module, with a NamedTuple in its code."""
    script = net(forward, example("Float", 2, 3))
    script.code["__torch__.py"] += PAIR
    return script


def test_items_have_names_and_places(tmp_path: Path) -> None:
    forward = """
pair = __torch__.Pair(torch.relu(x), torch.neg(x))
a, b, = pair
return (torch.sub(pair.second, a), torch.mul((pair)[0], b), pair)
"""
    model: Any = load(records(forward).saved(tmp_path))
    results = model(burn.tensor(X))
    flat = [*results[:2], *results[2]] if len(results) == 3 else [*results]
    rectified = np.maximum(X, 0)
    expected = [-X - rectified, rectified * -X, rectified, -X]
    for result, array in zip(flat, expected, strict=True):
        np.testing.assert_allclose(result.numpy(), array, rtol=1e-6)


def test_names_stay_behind_branches_and_loops(tmp_path: Path) -> None:
    forward = """
pair = __torch__.Pair(x, torch.neg(x))
if bool(torch.gt(torch.sum(x), 0)):
  kept = __torch__.Pair(torch.relu(x), x)
else:
  kept = __torch__.Pair(x, torch.neg(x))
for i in range(torch.size(x, 0)):
  pair = __torch__.Pair(torch.add(pair.first, kept.first), pair.second)
return torch.add(pair.first, kept.second)
"""
    model: Any = load(records(forward).saved(tmp_path))
    for x in (np.abs(X), -np.abs(X)):
        first, second = (np.maximum(x, 0), x) if x.sum() > 0 else (x, -x)
        expected = x + 2 * first + second
        result = model(burn.tensor(x)).numpy()
        np.testing.assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        ("return __torch__.Pair(x)", "expected the fields first, second, got 1"),
        ("return (__torch__.Pair(x, x)).third", "first, second has no third"),
    ],
)
def test_fields_are_checked(forward: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match=message):
        read(records(forward).saved(tmp_path))


@pytest.mark.torch
@pytest.mark.parametrize("is_sorted", [True, False])
def test_a_script_of_packed_sequences(is_sorted: bool, tmp_path: Path) -> None:
    """The lengths of an archive without an example are numbers of any dtype."""
    torch: Any = pytest.importorskip("torch")
    from tests.importer.torchscript.packed_models import PackedLstm, save_script

    torch.manual_seed(0)
    model = PackedLstm(is_sorted).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save_script(model, str(tmp_path / "net.pt"))
    shapes = {"x": ("batch", "steps", 3), "lengths": ("batch",)}
    generated: Any = load(tmp_path / "net.pt", Options(shapes=shapes))
    for lengths in ([5, 3], [7, 4, 2]) if is_sorted else ([2, 5], [4, 1, 7]):
        x = torch.randn(len(lengths), max(lengths), 3)
        expected = model(x, torch.tensor(lengths))
        counts = burn.tensor(np.array(lengths, np.float32))
        results = generated(burn.tensor(x.numpy()), counts)
        for result, tensor in zip(results, expected, strict=True):
            array = tensor.detach().numpy()
            np.testing.assert_allclose(result.numpy(), array, rtol=1e-5, atol=1e-6)
