"""``with`` statements of scripts: gradients, profiling, and casts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu
from burn_import import load
from burn_import.options import Options
from burn_ir import UnsupportedModel
from tests.importer.pytorch_files import tensor
from tests.importer.script_files import net

SHAPE = Options(shapes={"x": (3,)})
X = np.array([1.0, -2.0, 0.5], np.float32)
NO_GRAD = "autograd.grad_mode.no_grad"
PROFILED = "autograd.profiler.record_function"
AUTOCAST = "amp.autocast_mode.autocast"


def within(path: str, body: str, arguments: str = "") -> str:
    """Return statements that run a body in a context, as TorchScript writes them."""
    lines = "\n".join(f"  {line}" for line in body.splitlines())
    name = f"__torch__.torch.{path}"
    return (
        f"_0 = {name}.__new__({name})\n_1 = (_0).__init__({arguments})\n"
        f"with _0:\n{lines}\n"
    )


def result_and_gradient(
    forward: str, folder: Path, **attributes: Any
) -> tuple[Any, Any]:
    """Return the result for ``X``, and the gradient of its sum."""
    path = net(forward, **attributes).saved(folder)
    model: Any = load(path, SHAPE).to(Autodiff(Cpu()))
    x = burn.tensor(X, Autodiff(Cpu())).require_grad()
    result = model(x)
    return result.numpy(), result.sum().backward()[x].numpy()


BLOCKS = {
    "result": ("y = torch.mul(x, x)", "torch.add(x, y)", X + X**2, 1.0),
    "view": (
        "y = torch.mul(x, 2)\nz = torch.view(y, [3, 1])\n_2 = torch.add_(y, 1.)",
        "torch.add(x, torch.squeeze(z, 1))",
        3 * X + 1,
        1.0,
    ),
    "list": (
        "y = [torch.exp(x), x]",
        "torch.add(y[0], y[1])",
        np.exp(X) + X,
        1.0,
    ),
}


@pytest.mark.parametrize(("body", "result", "value", "slope"), BLOCKS.values())
def test_what_is_computed_without_gradients_has_none(
    body: str, result: str, value: Any, slope: float, tmp_path: Path
) -> None:
    forward = within(NO_GRAD, body) + f"return {result}"
    got, gradient = result_and_gradient(forward, tmp_path)
    np.testing.assert_allclose(got, value, rtol=1e-6)
    np.testing.assert_array_equal(gradient, np.full(3, slope))


def test_a_buffer_that_is_updated_without_gradients_stops_them(tmp_path: Path) -> None:
    body = "_2 = torch.add_(self.mean, x)"
    forward = within(NO_GRAD, body) + "return torch.sub(x, self.mean)"
    mean = tensor("0", np.ones(3, np.float32))
    got, gradient = result_and_gradient(forward, tmp_path, mean=mean)
    np.testing.assert_allclose(got, -np.ones(3))
    np.testing.assert_array_equal(gradient, np.ones(3))


def test_profiling_changes_nothing(tmp_path: Path) -> None:
    forward = within(PROFILED, "y = torch.mul(x, x)", '"block", None, ') + "return y"
    got, gradient = result_and_gradient(forward, tmp_path)
    np.testing.assert_array_equal(got, X**2)
    np.testing.assert_array_equal(gradient, 2 * X)


def test_casts_that_are_switched_off_change_nothing(tmp_path: Path) -> None:
    arguments = '"cpu", None, False, None, '
    forward = within(AUTOCAST, "y = torch.mul(x, x)", arguments) + "return y"
    got, _ = result_and_gradient(forward, tmp_path)
    np.testing.assert_array_equal(got, X**2)


@pytest.mark.parametrize(
    ("path", "body", "arguments", "message"),
    [
        (AUTOCAST, "y = torch.mul(x, x)", '"cpu", 15, True, None, ', "torch.autocast"),
        (NO_GRAD, "y = torch.add_(x, 1)", "", "is changed in place within"),
    ],
    ids=["autocast", "in place"],
)
def test_blocks_that_change_more_are_refused(
    path: str, body: str, arguments: str, message: str, tmp_path: Path
) -> None:
    script = net(within(path, body, arguments) + "return y")
    with pytest.raises(UnsupportedModel, match=message):
        load(script.saved(tmp_path), SHAPE)
