"""Gradients stop at ``detach`` and in regions without gradients, in every format."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from burn_import.pipeline import import_model
from tests.importer.branched_files import graph_inside
from tests.importer.exported_files import call, meta, program, ref, saved
from tests.importer.pytorch_files import tensor
from tests.importer.script_files import Script, example, module
from tests.modules import Array

SCALE = np.linspace(0.5, 2, 4, dtype=np.float32)
X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
AUTODIFF = burn.Autodiff(burn.Cpu())
KIND = meta("float32", [3, 4])

#: ``x * scale`` squared, plus what is detached of it times ``scale``.
SCRIPT = """class Net(Module):
  __parameters__ = ["scale", ]
  __buffers__ = []
  scale : Tensor
  training : bool
  def forward(self: __torch__.Net,
    x: Tensor) -> Tensor:
    scale = self.scale
    y = torch.mul(torch.detach(x), scale)
    d = torch.detach(y)
    return torch.add(torch.mul(d, scale), torch.mul(torch.detach(scale), x))
"""


def exported(folder: Path) -> Path:
    """Return the file of the same as an exported program."""
    nodes = [
        call("aten.detach.default", "c", self=ref("x")),
        call("aten.mul.Tensor", "y", self=ref("c"), other=ref("p_scale")),
        call("aten.detach.default", "d", self=ref("y")),
        call("aten.mul.Tensor", "z", self=ref("d"), other=ref("p_scale")),
        call("aten.detach.default", "s", self=ref("p_scale")),
        call("aten.mul.Tensor", "w", self=ref("s"), other=ref("x")),
        call("aten.add.Tensor", "out", self=ref("z"), other=ref("w")),
    ]
    values: dict[str, Any] = dict.fromkeys(["c", "y", "d", "z", "w", "out"], KIND)
    values["s"] = meta("float32", [4])
    content = program({"x": KIND}, {"scale": SCALE}, nodes, values, ["out"])
    return saved(folder, content, {"scale": SCALE})


def scripted(folder: Path) -> Path:
    """Return the file of the same as a trace."""
    root = module("Net", scale=tensor("0", SCALE))
    script = Script(root, {"__torch__.py": SCRIPT}, [example("Float", 3, 4)])
    return script.saved(folder)


def gradient(model: Any) -> Array:
    """Return the gradient of the sum of the results by ``scale``."""
    result = model(burn.tensor(X)).sum().backward()
    return np.asarray(result[model.scale].numpy())


@pytest.mark.parametrize("file", [exported, scripted])
def test_no_gradient_passes_through_detach(file: Any, tmp_path: Path) -> None:
    model: Any = load(file(tmp_path)).to(AUTODIFF)
    np.testing.assert_allclose(
        model(burn.tensor(X)).numpy(), X * SCALE**2 + X * SCALE, rtol=1e-6
    )
    np.testing.assert_allclose(gradient(model), (X * SCALE).sum(0), rtol=1e-6)


@pytest.mark.parametrize("file", [exported, scripted])
def test_a_compiled_step_has_the_same_gradient(file: Any, tmp_path: Path) -> None:
    model: Any = load(file(tmp_path)).to(AUTODIFF)

    def step(x: Any) -> Any:
        loss = model(x).sum()
        return loss.backward()[model.scale]

    compiled = burn.compile(step)
    for _ in range(3):
        actual = compiled(burn.tensor(X)).numpy()
        np.testing.assert_allclose(actual, (X * SCALE).sum(0), rtol=1e-6)


@pytest.mark.parametrize("file", [exported, scripted])
def test_detach_is_written_where_something_upstream_has_a_gradient(
    file: Any, tmp_path: Path
) -> None:
    text = import_model(file(tmp_path)).text
    assert text.count(".detach()") == 3
    assert "x.detach()" in text
    assert "self.scale.detach()" in text


@pytest.mark.parametrize("enabled", [True, False])
def test_a_region_without_gradients_gives_none(enabled: bool, tmp_path: Path) -> None:
    inner = {"a": KIND, "b": meta("float32", [4])}
    product = call("aten.mul.Tensor", "y", self=ref("a"), other=ref("b"))
    body = graph_inside(inner, [product], {"y": KIND}, ["y"])
    region = {
        "target": "torch.ops.higher_order.wrap_with_set_grad_enabled",
        "inputs": [
            {"name": "", "arg": arg, "kind": 1}
            for arg in (
                {"as_bool": enabled},
                body,
                ref("x"),
                ref("p_scale"),
            )
        ],
        "outputs": [{"as_tensors": [{"name": "r"}]}],
        "metadata": {},
    }
    nodes = [
        region,
        call("aten.mul.Tensor", "out", self=ref("r"), other=ref("p_scale")),
    ]
    values: dict[str, Any] = dict.fromkeys(["r", "out"], KIND)
    content = program({"x": KIND}, {"scale": SCALE}, nodes, values, ["out"])
    path = saved(tmp_path, content, {"scale": SCALE})
    model: Any = load(path).to(AUTODIFF)
    actual = model(burn.tensor(X)).numpy()
    np.testing.assert_allclose(actual, X * SCALE**2, rtol=1e-6)
    expected = (X * SCALE).sum(0) * (2 if enabled else 1)
    np.testing.assert_allclose(gradient(model), expected, rtol=1e-6)
