"""``nn.MultiheadAttention`` of PyTorch's programs: the layer, keys and masks."""

import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import nn
from burn_import import load
from burn_import.options import Options
from burn_import.pipeline import import_model, write_model
from tests.modules import import_file

torch: Any = pytest.importorskip("torch")
Module: Any = torch.nn.Module
pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
KINDS = ["pt2", "dynamo.onnx", "script.onnx"]


class Decoder(Module):  # type: ignore[misc]
    """Causal self-attention, and attention to a padded memory of other features."""

    def __init__(self, first: bool = True, width: int = 8, **options: Any) -> None:
        super().__init__()
        self.first = first
        layer, options = torch.nn.MultiheadAttention, {**options, "batch_first": first}
        self.own = layer(8, 2, batch_first=first)
        self.cross = layer(8, 2, kdim=width, vdim=width, **options)
        for parameter in self.parameters():
            torch.nn.init.normal_(parameter)

    def forward(self, x: Any, memory: Any, lengths: Any) -> Any:
        rows, columns = x.shape[self.first], memory.shape[self.first]
        mask = torch.full((rows, rows), -torch.inf).triu(1)
        hidden = torch.arange(columns) >= lengths.unsqueeze(1)
        x = x + self.own(x, x, x, attn_mask=mask, need_weights=False)[0]
        y, _ = self.cross(
            x, memory, memory, key_padding_mask=hidden, need_weights=False
        )
        return x + y


def inputs(first: bool, width: int, batch: int = 3) -> tuple[Any, ...]:
    """Return a sequence, a memory and its lengths."""
    x, memory = torch.randn(batch, 5, 8), torch.randn(batch, 4, width)
    lengths = torch.arange(batch) % 3 + 2
    if not first:
        x, memory = x.transpose(0, 1), memory.transpose(0, 1)
    return x, memory, lengths


def export(folder: Path, model: Any, example: tuple[Any, ...], kind: str) -> Path:
    """Return the file of a model, whose extents are those of the example."""
    path = folder / f"net.{kind}"
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        if kind == "pt2":
            torch.export.save(torch.export.export(model, example), path)
        elif kind == "script.onnx":
            torch.onnx.export(model, example, str(path), dynamo=False)
        else:
            logging.disable(logging.WARNING)
            torch.onnx.export(model, example, str(path), dynamo=True, verbose=False)
            logging.disable(logging.NOTSET)
    return path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("first", "width"), [(True, 8), (False, 8), (True, 6)])
def test_the_layer_with_its_masks(
    tmp_path: Path, kind: str, first: bool, width: int
) -> None:
    torch.manual_seed(0)
    original, example = Decoder(first, width).eval(), inputs(first, width)
    path = export(tmp_path, original, example, kind)
    model: Any = load(path)
    layers = [m for _, m in model.modules() if isinstance(m, nn.MultiheadAttention)]
    assert [layer.batch_first for layer in layers] == [first] * 2
    assert set(model.state_dict()) == set(original.state_dict())
    text = import_model(path, Options()).text
    assert "is_causal=True" in text and "key_padding_mask=" in text
    with torch.no_grad():
        expected = original(*example).numpy()
    arrays = [burn.tensor(x.numpy()) for x in example]
    for call in (model, burn.compile(model)):
        np.testing.assert_allclose(call(*arrays).numpy(), expected, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_completely_hidden_row_is_that_of_the_file(tmp_path: Path, kind: str) -> None:
    torch.manual_seed(0)
    original, example = Decoder().eval(), inputs(True, 8)
    model: Any = load(export(tmp_path, original, example, kind))
    hidden = (*example[:2], torch.tensor([4, 0, 2]))
    y = model(*(burn.tensor(x.numpy()) for x in hidden)).numpy()
    assert np.isfinite(y[[0, 2]]).all()
    assert np.isfinite(y[1]).all() == (kind == "pt2")  # ONNX's softmax gives NaN


def test_gradients_are_those_of_the_module(tmp_path: Path) -> None:
    torch.manual_seed(0)
    original, example = Decoder().eval(), inputs(True, 8)
    path = export(tmp_path, original, example, "script.onnx")
    model: Any = load(path).to(burn.Autodiff(burn.Cpu()))
    arrays = [burn.tensor(x.numpy()) for x in example]
    gradients = (model(*arrays) ** 2).sum().backward().by_name(model)
    (original(*example) ** 2).sum().backward()
    for key, parameter in original.named_parameters():
        expected = parameter.grad.numpy()
        scale = np.abs(expected).max() + 1e-3
        np.testing.assert_allclose(
            gradients[key].numpy() / scale, expected / scale, atol=1e-4
        )


def test_a_causal_layer_in_pytorch_has_a_mask(tmp_path: Path) -> None:
    torch.manual_seed(0)
    original, example = Decoder(first=False).eval(), inputs(False, 8)
    path = export(tmp_path, original, example, "pt2")
    compiled = import_model(path, Options(class_name="Net", stem="net", target="torch"))
    written = write_model(compiled, tmp_path / "net.py")
    model = import_file(written.module).Net.load()
    with torch.no_grad():
        np.testing.assert_allclose(model(*example), original(*example), atol=1e-4)


class Reader(Module):  # type: ignore[misc]
    """A recurrent layer, of whose outputs an attention reads those with time first."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = torch.nn.GRU(8, 8, batch_first=True)
        self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        for parameter in self.parameters():
            torch.nn.init.normal_(parameter)

    def forward(self, x: Any) -> Any:
        y, last = self.encoder(x)
        query = last.transpose(0, 1)
        return self.attention(query, y, y, need_weights=False)[0] + query


@pytest.mark.parametrize("kind", KINDS)
def test_a_recurrent_layer_keeps_its_layout_and_keys(tmp_path: Path, kind: str) -> None:
    torch.manual_seed(0)
    original, x = Reader().eval(), torch.randn(3, 5, 8)
    model: Any = load(export(tmp_path, original, (x,), kind))
    assert set(model.state_dict()) == set(original.state_dict())
    assert model.encoder.batch_first and model.attention.batch_first
    with torch.no_grad():
        expected = original(x).numpy()
    for call in (model, burn.compile(model)):
        y = call(burn.tensor(x.numpy())).numpy()
        np.testing.assert_allclose(y, expected, atol=1e-5)
