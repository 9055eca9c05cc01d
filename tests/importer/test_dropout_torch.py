"""Dropout restored from PyTorch's programs, compared with the modules they are of."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, nn
from burn_import import load
from burn_import.options import Options
from burn_import.pipeline import import_model

torch: Any = pytest.importorskip("torch")
Module: Any = torch.nn.Module
pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning"),
]


class Attention(Module):  # type: ignore[misc]
    """Attention with one dropout of the weights and of the result."""

    def __init__(self) -> None:
        super().__init__()
        self.project = torch.nn.Linear(16, 48)
        self.dropout = torch.nn.Dropout(0.2)

    def forward(self, x: Any) -> Any:
        parts = self.project(x).chunk(3, -1)
        query, key, value = (p.unflatten(-1, (2, 8)).transpose(1, 2) for p in parts)
        weights = (query @ key.transpose(-1, -2) * 8**-0.5).softmax(-1)
        x = self.dropout(weights) @ value
        return self.dropout(x.transpose(1, 2).flatten(2))


class Network(Module):  # type: ignore[misc]
    """Layers with all kinds of dropout, one of them called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.channels = torch.nn.Conv1d(3, 16, 2), torch.nn.Dropout1d(0.3)
        self.attention = Attention()
        self.first, self.second = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)
        self.drop = torch.nn.Dropout(0.1)
        self.head = torch.nn.Sequential(
            torch.nn.Linear(16, 8),
            torch.nn.ReLU(),
            torch.nn.AlphaDropout(0.25),
            torch.nn.Dropout(0.4, inplace=True),
            torch.nn.Linear(8, 5),
        )

    def forward(self, x: Any) -> Any:
        x = self.channels(self.conv(x)).transpose(1, 2)
        x = x + self.attention(x)
        x = x + self.drop(self.second(self.drop(torch.relu(self.first(x)))))
        return self.head(torch.nn.functional.dropout(x, 0.15, self.training))


def saved(folder: Path, model: Any, x: Any, kind: str) -> Path:
    """Return the file of a model in evaluation."""
    path = folder / f"net.{kind}"
    if kind == "pt2":
        torch.export.save(torch.export.export(model, (x,)), path)
    else:
        torch.jit.save(torch.jit.trace(model, (x,)), path)
    return path


@pytest.mark.parametrize("kind", ["pt2", "pt"])
def test_layers_of_the_module(tmp_path: Path, kind: str) -> None:
    torch.manual_seed(0)
    original, x = Network().eval(), torch.randn(2, 3, 6)
    model: Any = load(saved(tmp_path, original, x, kind), Options(dropout=True))
    restored = [m for _, m in model.modules() if isinstance(m, nn.Dropout)]
    assert sorted((type(m).__name__, m.p) for m in restored) == [
        ("AlphaDropout", 0.25),
        ("Dropout", 0.1),
        ("Dropout", 0.15),
        ("Dropout", 0.2),
        ("Dropout", 0.2),
        ("Dropout", 0.4),
        ("Dropout1d", 0.3),
    ]
    expected = original(x).detach().numpy()
    actual = model(burn.tensor(x.numpy())).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    state = {k: torch.tensor(v.numpy()) for k, v in model.state_dict().items()}
    original.load_state_dict(state, strict=True)


class Rows(Module):  # type: ignore[misc]
    """One dropout after a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.drop = torch.nn.Linear(4, 64), torch.nn.Dropout(0.3)

    def forward(self, x: Any) -> Any:
        return self.drop(self.linear(x))


@pytest.mark.parametrize("kind", ["pt2", "pt"])
def test_training_drops_as_often_as_the_module(tmp_path: Path, kind: str) -> None:
    torch.manual_seed(0)
    original, x = Rows().eval(), torch.randn(200, 4)
    model: Any = load(saved(tmp_path, original, x, kind), Options(dropout=True))
    model.to(Autodiff(Cpu()))
    rates = {
        "burn": (model(burn.tensor(x.numpy())).numpy() == 0).mean(),
        "torch": float((original.train()(x) == 0).float().mean()),
    }
    assert all(abs(rate - 0.3) < 0.02 for rate in rates.values()), rates


class Recurrent(Module):  # type: ignore[misc]
    """A stack of recurrent layers with dropout between them."""

    def __init__(self, kind: str, **options: Any) -> None:
        super().__init__()
        self.layers = getattr(torch.nn, kind)(3, 4, 3, dropout=0.35, **options)

    def forward(self, x: Any) -> Any:
        return self.layers(x)[0]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["pt2", "pt"])
@pytest.mark.parametrize(
    ("layer", "options"),
    [
        ("GRU", {}),
        ("LSTM", {"batch_first": True, "bidirectional": True}),
        ("RNN", {"nonlinearity": "relu"}),
    ],
)
def test_dropout_between_recurrent_layers(
    tmp_path: Path, layer: str, options: dict[str, Any], kind: str
) -> None:
    torch.manual_seed(0)
    original, x = Recurrent(layer, **options).eval(), torch.randn(5, 2, 3)
    path = saved(tmp_path, original, x, kind)
    compiled = import_model(path, Options(dropout=True))
    assert "dropout=0.35" in compiled.text and not compiled.notes
    assert "dropout" not in import_model(path).text
    model: Any = load(path, Options(dropout=True))
    expected = original(x).detach().numpy()
    actual = model(burn.tensor(x.numpy())).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)
    state = {k: torch.tensor(v.numpy()) for k, v in model.state_dict().items()}
    original.load_state_dict(state, strict=True)
    model.to(Autodiff(Cpu()))
    first, second = (model(burn.tensor(x.numpy())).numpy() for _ in range(2))
    assert (first != second).any()


@pytest.mark.filterwarnings("ignore")
def test_dropout_between_projected_layers_is_noted(tmp_path: Path) -> None:
    path = saved(
        tmp_path, Recurrent("LSTM", proj_size=2).eval(), torch.randn(5, 2, 3), "pt2"
    )
    (note,) = import_model(path, Options(dropout=True)).notes
    assert note.startswith("Dropout between LSTMs with proj_size (p=0.35)")
    assert not import_model(path).notes
