"""``Module.load``: the record is that of the class, or of a base."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn import Autodiff, Cpu, nn
from burn.store import Store


class Net(nn.Module):
    """Two layers."""

    def __init__(self, classes: int = 2) -> None:
        super().__init__()
        self.body = nn.Linear(3, 4)
        self.head = nn.Linear(4, classes)


class Shadowing(nn.Module):
    """A model whose author called layers as what ``load`` uses."""

    def __init__(self) -> None:
        super().__init__()
        self.load = nn.Linear(2, 2)  # type: ignore[method-assign, assignment]
        self.WEIGHTS = nn.Linear(2, 2)  # type: ignore[misc, assignment]


def named(net: nn.Module, weights: Path | bytes) -> type:
    """A class with ``weights`` as its record, as generated files have."""
    return type("Named", (type(net),), {"WEIGHTS": weights})


def check(actual: nn.Module, expected: nn.Module) -> None:
    for key, value in expected.state_dict().items():
        np.testing.assert_array_equal(actual.state_dict()[key].numpy(), value.numpy())


def test_the_record_of_the_class_is_loaded(tmp_path: Path) -> None:
    net, path = Net(), tmp_path / "net.safetensors"
    net.save_weights(path)
    kind: Any = named(net, path)
    check(kind.load(), net)
    on_tape = kind.load(backend=Autodiff(Cpu()))
    assert isinstance(on_tape.head.weight.value.backend, Autodiff)
    assert type(kind.load()) is kind


def test_subclasses_inherit_the_record(tmp_path: Path) -> None:
    net, path = Net(), tmp_path / "net.safetensors"
    net.save_weights(path)
    below: Any = type("Below", (named(net, path),), {"__module__": "elsewhere"})
    check(below.load(), net)
    assert type(below.load()) is below


def test_the_record_can_be_bytes_and_another(tmp_path: Path) -> None:
    net, other = Net(), Net()
    other.save_weights(tmp_path / "other.safetensors")
    kind: Any = named(net, Store().to_bytes(net, "safetensors"))
    check(kind.load(), net)
    check(kind.load(tmp_path / "other.safetensors"), other)
    check(kind().load_weights(), net)


def test_another_head_takes_what_fits_of_the_record(
    capsys: pytest.CaptureFixture[str],
) -> None:
    net = Net()
    kind: Any = named(net, Store().to_bytes(net, "safetensors"))
    larger = kind(classes=5).load_weights(strict=False)
    np.testing.assert_array_equal(larger.body.weight.numpy(), net.body.weight.numpy())
    assert "mis-shaped" in capsys.readouterr().out


def test_layers_may_be_called_as_the_method() -> None:
    net = Shadowing()
    data = Store().to_bytes(net, "safetensors")
    kind: Any = named(net, data)
    for again in (Shadowing().load_weights(data), kind.load(), kind().load_weights()):
        check(again, net)
        assert set(dict(again.boxes())) >= {"load.weight", "WEIGHTS.weight"}


def test_a_class_without_a_record_says_so() -> None:
    with pytest.raises(TypeError, match=r"Linear has no weights file"):
        nn.Linear.load()
    with pytest.raises(TypeError, match=r"Net has no weights file \(Net.WEIGHTS\)"):
        Net.load()
