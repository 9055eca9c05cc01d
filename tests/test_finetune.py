"""An imported classifier is trained further: a new last layer, then all of it."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import burn
from burn import Autodiff, Cpu, Parameter, Tensor, nn, ops
from tests.modules import Array, assert_same, call, generate, import_file

DIGITS = Path(__file__).parent.parent / "models" / "digits"
BATCH = 64
STATISTICS = ("running_mean", "running_var")


def data(part: str) -> tuple[Array, Array]:
    """Return images float32[N, 1, 8, 8] and labels int64[N] of one part."""
    with np.load(DIGITS / f"digits_{part}.npz") as file:
        return file["images"], file["labels"]


@pytest.fixture(scope="module")
def model_class(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The class generated from the ONNX file, in a module of its own."""
    path, name = generate(DIGITS / "digits.onnx", tmp_path_factory.mktemp("digits"))
    return getattr(import_file(path), name)


@pytest.fixture
def model(model_class: Any) -> Any:
    """The trained model, on the backend that differentiates."""
    return model_class.load(backend=Autodiff(Cpu()))


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean negative logarithm of the share of the right class."""
    shares = ops.log_softmax(logits, axis=1)
    return -ops.gather_elements(shares, labels.unsqueeze(1), axis=1).mean()


def accuracy(model: Any) -> float:
    """Return the share of test images that the model, outside training, names."""
    images, labels = data("test")
    (logits,) = call(model.valid(), [images])
    return float((logits.argmax(1) == labels).mean())


def batches(epochs: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Return images and labels of the training part, shuffled anew each time round."""
    images, labels = data("train")
    rng = np.random.default_rng(29)
    for _ in range(epochs):
        order = rng.permutation(len(labels))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            chosen = order[start : start + BATCH]
            yield burn.tensor(images[chosen]), burn.tensor(labels[chosen])


def train(
    model: Any, parameters: Collection[Parameter], epochs: int, rate: float
) -> float:
    """Return the last loss, after plain gradient steps on ``parameters``."""
    loss = None
    for images, labels in batches(epochs):
        loss = cross_entropy(model(images), labels)
        grads = loss.backward()
        for parameter in parameters:
            parameter.set(parameter.value.detach() - rate * grads[parameter])
    assert loss is not None
    return float(loss.item())


def initializers() -> set[str]:
    """Return the names of the float initializers, without running statistics."""
    graph = onnx.load(DIGITS / "digits.onnx").graph
    return {
        tensor.name
        for tensor in graph.initializer
        if tensor.data_type == onnx.TensorProto.FLOAT
        and not tensor.name.endswith(STATISTICS)
    }


def restart_head(model: Any) -> None:
    """Return nothing; the last layer forgets what it has learnt."""
    linear = model.head.linear
    for box in (linear.weight, linear.bias):
        box.set(nn.init.kaiming_uniform(box.shape, linear.in_features).make())


def test_every_weight_is_trained(model: Any) -> None:
    parameters = dict(model.parameters())
    assert set(parameters) == initializers()
    images, labels = next(batches(1))
    grads = cross_entropy(model(images), labels).backward()
    for name, parameter in parameters.items():
        assert grads[parameter].shape == parameter.shape, name
        assert np.abs(grads[parameter].numpy()).max() > 0, name


def test_statistics_are_kept_and_not_trained(model: Any) -> None:
    kept = set(model.state_dict()) - set(dict(model.parameters()))
    assert {name.rpartition(".")[2] for name in kept} == set(STATISTICS)
    assert len(kept) == 4
    images, labels = next(batches(1))
    grads = cross_entropy(model(images), labels).backward()
    boxes = dict(model.boxes())
    assert not any(boxes[name] in grads for name in kept)


def test_a_new_head_and_then_everything(model: Any) -> None:
    trained = accuracy(model)
    assert trained > 0.98
    nn.init.seed(3)
    restart_head(model)
    assert accuracy(model) < 0.5
    stem = model.stem.conv.weight.numpy().copy()
    train(model, dict(model.head.parameters()).values(), epochs=1, rate=0.2)
    assert accuracy(model) >= 0.95
    np.testing.assert_array_equal(model.stem.conv.weight.numpy(), stem)
    restart_head(model)
    loss = train(model, dict(model.parameters()).values(), epochs=2, rate=0.1)
    assert loss < 0.3
    assert accuracy(model) >= 0.95
    assert np.abs(model.stem.conv.weight.numpy() - stem).max() > 1e-3


def test_weights_go_to_a_record_and_back(
    model: Any, model_class: Any, tmp_path: Path
) -> None:
    images, _ = data("test")
    before, after = tmp_path / "before.safetensors", tmp_path / "after.safetensors"
    model.save_weights(before)
    first = call(model.valid(), [images])
    train(model, dict(model.parameters()).values(), epochs=1, rate=0.1)
    model.save_weights(after)
    second = call(model.valid(), [images])
    assert np.abs(second[0] - first[0]).max() > 0.1
    assert_same(call(model_class.load(before), [images]), first)
    assert_same(call(model_class.load(after), [images]), second)
    assert_same(call(model_class.load(), [images]), first)
    assert_same(call(model.load_weights(before).valid(), [images]), first)
