"""In-place changes are visible in all aliases, or reading an alias is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from burn_import.frontends.torchscript import read
from burn_ir import UnsupportedModel
from tests.importer.pytorch_files import tensor
from tests.importer.script_files import example, net

#: Views in the code, and the same in NumPy.
VIEWS: dict[str, Any] = {
    "torch.select(y, 1, 2)": lambda y: y[:, 2],
    "torch.select(y, 0, -1)": lambda y: y[-1],
    "torch.slice(y, 1, 1, 3)": lambda y: y[:, 1:3],
    "torch.slice(y, 2, 0, 9223372036854775807, 2)": lambda y: y[:, :, ::2],
    "torch.narrow(y, 1, 1, 2)": lambda y: y[:, 1:3],
    "torch.transpose(y, 0, 2)": lambda y: y.transpose(2, 1, 0),
    "torch.permute(y, [2, 0, 1])": lambda y: y.transpose(2, 0, 1),
    "torch.view(y, [3, -1])": lambda y: y.reshape(3, -1),
    "torch.flatten(y, 1)": lambda y: y.reshape(3, -1),
    "torch.unsqueeze(y, -1)": lambda y: y[..., None],
    "torch.select(torch.select(y, 0, 1), 0, 2)": lambda y: y[1, 2],
    "torch.t(torch.select(y, 1, 0))": lambda y: y[:, 0].T,
    "torch.slice(torch.transpose(y, 1, 2), 2, 1)": lambda y: y.transpose(0, 2, 1)[
        :, :, 1:
    ],
    "torch.detach(y)": lambda y: y,
    "torch.diagonal(y, 1, 1, 2)": lambda y: np.einsum("ijj->ij", y[:, :, 1:]),
    "torch.to(y, 6)": lambda y: y,
    "torch.dropout(y, 0.5, False)": lambda y: y,
}
CHANGES: dict[str, Any] = {
    "torch.mul_(v, 3)": lambda v: np.multiply(v, 3, out=v),
    "torch.copy_(v, torch.ones([1]))": lambda v: np.copyto(v, 1),
    "torch.zero_(v)": lambda v: np.copyto(v, 0),
    "torch.relu_(v)": lambda v: np.maximum(v, 0, out=v),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("view", VIEWS)
def test_a_changed_view_changes_the_whole(
    view: str, change: str, tmp_path: Path
) -> None:
    forward = f"y = torch.clone(x)\nv = {view}\n_0 = {change}\nreturn torch.add(y, x)"
    path = net(forward, example("Float", 3, 4, 5)).saved(tmp_path)
    model: Any = load(path)
    x = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
    y = x.copy()
    CHANGES[change](VIEWS[view](y))
    np.testing.assert_allclose(model(burn.tensor(x)).numpy(), y + x, rtol=1e-6)


@pytest.mark.parametrize(
    "copy",
    [
        "torch.clone(y)",
        "torch.contiguous(torch.transpose(y, 0, 1))",
        "torch.mul(y, 1)",
        "torch.to(y, 7)",
        "torch.to(y, 6, False, True)",
    ],
)
def test_a_changed_copy_changes_nothing_else(copy: str, tmp_path: Path) -> None:
    forward = f"y = torch.exp(x)\nv = {copy}\n_0 = torch.mul_(v, 3)\nreturn y"
    path = net(forward, example("Float", 3, 4)).saved(tmp_path)
    model: Any = load(path)
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    np.testing.assert_allclose(model(burn.tensor(x)).numpy(), np.exp(x), rtol=1e-6)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.sampled(6)
@pytest.mark.sampled(6)
def test_a_view_shows_changes_of_the_whole(
    view: str, change: str, tmp_path: Path
) -> None:
    """Also in a branch, and for views of views."""
    forward = f"""
y = torch.clone(x)
w = {view}
_0 = {change.replace("(v", "(y")}
if bool(torch.gt(torch.sum(x), 0)):
  _1 = torch.add_(torch.select(y, 0, 1), 2)
else:
  pass
u = torch.mul(w, 2)
_2 = torch.neg_(w)
return (u, w, y)
"""
    path = net(forward, example("Float", 3, 4, 5)).saved(tmp_path)
    model: Any = load(path)
    drawn = np.random.default_rng(0).uniform(0.1, 1, size=(3, 4, 5))
    for x in (drawn.astype(np.float32), -drawn.astype(np.float32)):
        y = x.copy()
        w = VIEWS[view](y)
        CHANGES[change](y)
        if x.sum() > 0:
            y[1] += 2
        u = w * 2
        np.negative(w, out=w) if w.base is not None or w is y else None
        results = [part.numpy() for part in model(burn.tensor(x))]
        for actual, expected in zip(results, (u, w, y), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_what_is_not_known_to_share_memory_is_refused(tmp_path: Path) -> None:
    forward = """
y = torch.exp(x)
v = torch.reshape(torch.transpose(y, 0, 1), [-1])
_0 = torch.mul_(v, 3)
return torch.relu(y)
"""
    path = net(forward, example("Float", 3, 4)).saved(tmp_path)
    with pytest.raises(UnsupportedModel, match="line 10: a tensor is read after torch"):
        read(path)


@pytest.mark.parametrize(
    "change",
    [
        "_0 = torch.add_(self.count, 1)",
        "self.count = torch.add(self.count, 1)",
        "c = torch.select(self.count, 0, 0)\n_0 = torch.add_(c, 1)",
    ],
)
def test_a_stored_tensor_that_changes_is_a_state(change: str, tmp_path: Path) -> None:
    count = tensor("0", np.zeros(1, np.float32))
    forward = f"{change}\nreturn torch.mul(x, self.count)"
    script = net(forward, example("Float", 2, 3), count=count)
    model: Any = load(script.saved(tmp_path))
    x = np.ones((2, 3), np.float32)
    for round_ in (1, 2, 3):
        assert (model(burn.tensor(x)).numpy() == round_).all()
    assert model.state_dict()["count"].numpy().tolist() == [3]


def test_a_result_goes_into_a_tensor_that_is_given(tmp_path: Path) -> None:
    forward = (
        "y = torch.exp(x)\nz = torch.neg(x)\n"
        "_0 = torch.atan2(y, z, out=z)\nreturn (y, torch.mul(z, 2))"
    )
    model: Any = load(net(forward, example("Float", 3, 4)).saved(tmp_path))
    x = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
    first, second = (y.numpy() for y in model(burn.tensor(x)))
    np.testing.assert_allclose(first, np.exp(x), rtol=1e-6)
    np.testing.assert_allclose(second, 2 * np.arctan2(np.exp(x), -x), rtol=1e-5)


def test_statistics_in_training_change_what_is_given(tmp_path: Path) -> None:
    forward = (
        "m, v = torch.mul(w, 0.5), torch.exp(w)\n"
        "y = torch.batch_norm(x, None, None, m, v, True, 0.25, 0.01, False)\n"
        "return (y, m, v)"
    )
    result = net(
        forward,
        example("Float", 5, 3, 4),
        example("Float", 3),
        parameters="x: Tensor,\n    w: Tensor",
    )
    model: Any = load(result.saved(tmp_path))
    rng = np.random.default_rng(2)
    x, w = (rng.normal(size=s).astype(np.float32) for s in ((5, 3, 4), (3,)))
    results = [y.numpy() for y in model(burn.tensor(x), burn.tensor(w))]
    mean, spread = x.mean((0, 2)), x.var((0, 2))
    unit = (x - mean[:, None]) / np.sqrt(spread + 0.01)[:, None]
    kept = 0.75 * np.exp(w) + 0.25 * x.var((0, 2), ddof=1)
    for a, b in zip(results, (unit, w * 0.375 + 0.25 * mean, kept), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
