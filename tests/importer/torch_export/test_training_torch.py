"""Models exported in training mode: dropout inside of operators."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import.options import Options
from burn_import.pipeline import import_model, write_model
from tests.modules import import_file

torch: Any = pytest.importorskip("torch")
Module: Any = torch.nn.Module
pytestmark = pytest.mark.torch
MASKS = ("causal", "bool", "float", "scale")


class Recurrent(Module):  # type: ignore[misc]
    """A stack of recurrent layers with dropout between them."""

    def __init__(self, kind: Any, **options: Any) -> None:
        super().__init__()
        self.layers = kind(6, 4, 3, dropout=0.4, batch_first=True, **options)

    def forward(self, x: Any) -> Any:
        return self.layers(x)[0]


class Attention(Module):  # type: ignore[misc]
    """Attention whose weights are dropped, with one of the masks."""

    def __init__(self, mask: str = "") -> None:
        super().__init__()
        self.mask = mask
        self.project = torch.nn.Linear(6, 18)

    def forward(self, x: Any) -> Any:
        parts = self.project(x).chunk(3, -1)
        heads = [part.unflatten(-1, (2, 3)).transpose(1, 2) for part in parts]
        below = torch.ones(x.shape[1], x.shape[1]).tril()
        below[0] = 0  # a row without keys, whose result is zeros
        options = {
            "causal": {"is_causal": True},
            "bool": {"attn_mask": below.bool()},
            "float": {"attn_mask": below},
            "scale": {"scale": 0.2},
        }.get(self.mask, {})
        ratio = 0.4 if self.training else 0.0
        attend = torch.nn.functional.scaled_dot_product_attention
        return attend(*heads, dropout_p=ratio, **options)


MODELS: dict[str, Callable[[], Any]] = {
    "lstm": lambda: Recurrent(torch.nn.LSTM),
    "gru": lambda: Recurrent(torch.nn.GRU, bidirectional=True),
    "attention": Attention,
    **{f"attention, {kind}": partial(Attention, kind) for kind in MASKS},
    "encoder layer": lambda: torch.nn.TransformerEncoderLayer(
        6, 2, 8, batch_first=True, dropout=0.3
    ),
}


def imported(model: Any, x: Any, kind: str, folder: Path) -> Any:
    """Return the class generated from an export in training mode."""
    path = folder / f"model.{kind}"
    model.train()
    if kind == "pt2":
        torch.export.save(torch.export.export(model, (x,), strict=False), path)
    else:
        torch.jit.save(torch.jit.trace(model, (x,), check_trace=False), path)
    compiled = import_model(path, Options(class_name="Model"))
    written = write_model(compiled, folder / "model.py")
    return import_file(written.module).Model


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ("pt2", "pt"))
@pytest.mark.parametrize("name", MODELS)
def test_dropout_is_for_training(name: str, kind: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, x = MODELS[name](), torch.randn(2, 5, 6)
    cls = imported(model, x, kind, tmp_path)
    expected = model.eval()(x).detach().numpy()
    array = burn.tensor(x.numpy())
    module = cls.load()
    compiled = burn.compile(module)
    for result in (module(array), *(compiled(array) for _ in range(3))):
        np.testing.assert_allclose(result.numpy(), expected, atol=1e-6)
    trained = cls.load(backend=burn.Autodiff(burn.Cpu()))
    results = [trained(array) for _ in range(2)]
    assert np.abs(results[0].numpy() - results[1].numpy()).max() > 1e-3
    gradients = (results[0] ** 2).sum().backward()
    own = dict(trained.parameters())
    assert sorted(own) == sorted(key for key, _ in model.named_parameters())
    assert all(np.isfinite(gradients[box].numpy()).all() for box in own.values())
