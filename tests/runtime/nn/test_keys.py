"""Keys of a state: tied weights, and what PyTorch has beside."""

from pathlib import Path

import numpy as np
import pytest

import burn
from burn import Tensor, nn
from burn.backend import Autodiff, Cpu
from burn.record import open_record


class Tied(nn.Module):
    """A table, and the projection back to it."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 3)
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.table.weight

    def __call__(self, x: Tensor) -> Tensor:
        return self.head(self.table(x))


WEIGHT = np.arange(15, dtype=np.float32).reshape(5, 3)
IDS = burn.tensor(np.array([1, 4]))


def test_a_tied_weight_has_both_keys_and_is_one_parameter() -> None:
    model = Tied()
    assert list(model.state_dict()) == ["table.weight", "head.weight"]
    assert [path for path, _ in model.parameters()] == ["table.weight"]
    assert model.num_parameters() == 15


@pytest.mark.parametrize("keys", [("table",), ("head",), ("table", "head")])
def test_any_of_its_keys_sets_a_tied_weight(keys: tuple[str, ...]) -> None:
    model = Tied().load_state_dict({f"{key}.weight": WEIGHT for key in keys})
    np.testing.assert_array_equal(model.head.weight.numpy(), WEIGHT)
    np.testing.assert_array_equal(model.table.weight.numpy(), WEIGHT)


def test_different_values_for_one_weight_are_refused() -> None:
    model = Tied().load_state_dict({"table.weight": WEIGHT})
    state = {"table.weight": WEIGHT + 1, "head.weight": WEIGHT}
    with pytest.raises(nn.WeightsError, match=r"head.weight: .* table.weight"):
        model.load_state_dict(state)
    np.testing.assert_array_equal(model.table.weight.numpy(), WEIGHT)


def test_neither_key_is_missing_weights() -> None:
    with pytest.raises(nn.WeightsError, match="missing table.weight"):
        Tied().load_state_dict({})


def test_a_record_stores_a_tied_weight_once(tmp_path: Path) -> None:
    model = Tied().load_state_dict({"table.weight": WEIGHT})
    model.save_weights(tmp_path / "tied.safetensors")
    assert list(open_record(tmp_path / "tied.safetensors")) == ["table.weight"]
    again = Tied().load_weights(tmp_path / "tied.safetensors")
    np.testing.assert_array_equal(again.head.weight.numpy(), WEIGHT)


def test_a_tied_weight_has_the_gradient_of_all_its_uses() -> None:
    model = Tied().load_state_dict({"table.weight": WEIGHT}).to(Autodiff(Cpu()))
    grads = model(IDS).sum().backward()
    actual = grads[model.head.weight].numpy()
    columns, rows = WEIGHT.sum(0), WEIGHT[[1, 4]].sum(0)
    expected = np.tile(rows, (5, 1))
    expected[[1, 4]] += columns
    np.testing.assert_allclose(actual, expected)
    model.head.weight.set(model.head.weight.value.detach() * 2.0)
    np.testing.assert_array_equal(model.table.weight.numpy(), WEIGHT * 2)


def test_a_copy_for_inference_stays_tied() -> None:
    model = Tied().load_state_dict({"head.weight": WEIGHT}).to(Autodiff(Cpu()))
    copy = model.valid()
    assert copy.head.weight is copy.table.weight
    assert copy.head.weight is not model.head.weight


def test_counts_of_batches_are_no_weights() -> None:
    state = {
        "weight": np.ones(2, np.float32),
        "bias": np.zeros(2, np.float32),
        "running_mean": np.zeros(2, np.float32),
        "running_var": np.ones(2, np.float32),
        "num_batches_tracked": np.array(7),
    }
    norm = nn.BatchNorm2d(2).load_state_dict(state)
    assert "num_batches_tracked" not in norm.state_dict()
    with pytest.raises(nn.WeightsError, match="unexpected num_batches_tracked"):
        nn.LayerNorm(2).load_state_dict(
            {key: state[key] for key in ("weight", "bias", "num_batches_tracked")}
        )


def test_conv1d_holds_its_matrix_as_it_multiplies() -> None:
    layer = nn.Conv1D(3, 2)
    weight, bias = WEIGHT[:2], np.array([1.0, 2.0, 3.0], np.float32)
    assert {k: v.shape for k, v in layer.state_dict().items()} == {
        "weight": (2, 3),
        "bias": (3,),
    }
    layer.load_state_dict({"weight": weight, "bias": bias})
    x = np.array([[[1.0, -1.0]]], np.float32)
    np.testing.assert_array_equal(layer(burn.tensor(x)).numpy(), x @ weight + bias)
    assert repr(layer) == "Conv1D(3, 2, bias=True)"
    assert nn.Conv1D(3, 2, bias=False).bias is None


class Wrapped(Tied):
    """A model whose keys begin with the name that it had in another module."""

    record_prefix = "model"
    record_names = {"head": "net.head"}


class Around(nn.Module):
    """A module around another one with a prefix."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = Wrapped()


def test_all_keys_begin_with_the_prefix(tmp_path: Path) -> None:
    model = Wrapped()
    keys = ["model.table.weight", "model.net.head.weight"]
    assert list(model.state_dict()) == keys
    assert [path for path, _ in model.modules()] == [
        "",
        "model.table",
        "model.net.head",
    ]
    assert list(Around().state_dict()) == [f"backbone.{key}" for key in keys]
    path = tmp_path / "net.safetensors"
    model.load_state_dict({keys[0]: WEIGHT}).save_weights(path)
    np.testing.assert_array_equal(Wrapped().load(path).table.weight.numpy(), WEIGHT)
    with pytest.raises(nn.WeightsError, match=r"missing model\.table\.weight"):
        model.load_state_dict({"table.weight": WEIGHT})


def test_patterns_select_by_keys_with_the_prefix() -> None:
    model = Wrapped().to(Autodiff(Cpu())).freeze("model.table")
    assert not any(one.requires_grad for _, one in model.parameters())
