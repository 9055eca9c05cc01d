"""Layers that change shapes, named containers, and what they refuse."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, loss, nn
from burn.attribute_hints import LAYERS

X = np.arange(2 * 4 * 6, dtype=np.float32).reshape(2, 4, 6)
ROOT = Path(__file__).parents[3]
WRONG_MODE: Any = "median"


def result(layer: Callable[..., Any], *arrays: Any) -> Any:
    """Return the result of a layer as an array."""
    return layer(*map(burn.tensor, arrays)).numpy()


@pytest.mark.parametrize(
    ("layer", "mode"),
    [(nn.ReflectionPad1d, "reflect"), (nn.ReplicationPad1d, "edge")]
    + [(nn.CircularPad1d, "wrap"), (nn.ZeroPad1d, "constant")],
)
def test_padding_is_that_of_numpy(layer: Any, mode: Any) -> None:
    expected = np.pad(X, ((0, 0), (0, 0), (2, 1)), mode=mode)
    np.testing.assert_array_equal(result(layer((2, 1)), X), expected)


def test_arrangements_are_inverse() -> None:
    image = np.arange(2 * 8 * 2 * 3, dtype=np.float32).reshape(2, 8, 2, 3)
    shuffled = nn.PixelShuffle(2)(burn.tensor(image))
    assert shuffled.shape == (2, 2, 4, 6)
    assert shuffled.numpy()[0, 0, 0, 1] == image[0, 1, 0, 0]
    np.testing.assert_array_equal(nn.PixelUnshuffle(2)(shuffled).numpy(), image)
    flat = nn.Flatten()(burn.tensor(image))
    again = nn.Unflatten(1, (8, 2, 3))(flat)
    np.testing.assert_array_equal(again.numpy(), image)
    turns = result(nn.ChannelShuffle(2), image)
    np.testing.assert_array_equal(turns, image[:, [0, 4, 1, 5, 2, 6, 3, 7]])


def test_adaptive_maxima_of_windows_that_overlap() -> None:
    expected = [X[:, :, 0:2].max(2), X[:, :, 1:3].max(2)]
    expected += [X[:, :, 3:5].max(2), X[:, :, 4:6].max(2)]
    got = result(nn.AdaptiveMaxPool1d(4), X)
    np.testing.assert_array_equal(got, np.stack(expected, 2))
    empty = result(nn.AdaptiveMaxPool1d(4), X[:0])
    assert empty.shape == (0, 4, 4)


def test_channels_are_dropped_whole() -> None:
    layer = nn.Dropout2d(0.5, seed=3)
    image = np.ones((8, 16, 3, 3), np.float32)
    np.testing.assert_array_equal(result(layer, image), image)
    dropped = result(layer.to(Autodiff(Cpu())), image)
    assert set(np.unique(dropped)) == {0.0, 2.0}
    np.testing.assert_array_equal(
        dropped, np.broadcast_to(dropped[..., :1, :1], dropped.shape)
    )


def test_values_by_name_have_keys_and_are_trained() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.heads = nn.ModuleDict({"a": nn.Linear(3, 2), "b": nn.Linear(3, 1)})
            self.scales = nn.ParameterDict({"a": nn.parameter(2)})

        def __call__(self, x: burn.Tensor) -> burn.Tensor:
            head: Any = self.heads["a"]
            y: burn.Tensor = head(x) * self.scales["a"].value
            return y

    model = Net()
    keys = ["heads.a.weight", "heads.a.bias", "heads.b.weight", "heads.b.bias"]
    assert list(model.state_dict()) == [*keys, "scales.a"]
    model.to(Autodiff(Cpu()))
    total = model(burn.tensor(np.ones((4, 3), np.float32))).sum()
    assert set(total.backward().by_name(model)) == {*keys[:2], "scales.a"}
    assert "b" in model.heads and len(model.heads) == 2
    del model.heads["b"]
    assert list(model.heads) == ["a"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.ZeroPad2d((1, 2)), "expected 4 widths"),
        (lambda: nn.Upsample(), "expected size or scale_factor"),
        (
            lambda: nn.Upsample(3, mode="nearest", align_corners=True),
            "no align_corners",
        ),
        (lambda: nn.EmbeddingBag(3, 2, WRONG_MODE), "expected mode sum, mean or max"),
        (lambda: nn.ModuleDict({"a.b": nn.ReLU()}), "without dots, got 'a.b'"),
        (lambda: result(nn.PixelShuffle(3), X[None]), "a multiple of 9 at axis 1"),
        (lambda: result(nn.ReflectionPad1d(6), X), "widths up to 5 at axis -1"),
        (lambda: result(nn.Upsample(3, mode="bilinear"), X), "expected rank 4"),
        (lambda: result(nn.GLU(), X[..., :5]), "an even extent at axis -1"),
    ],
)
def test_mistakes_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_dict_of_modules_takes_modules_only() -> None:
    with pytest.raises(TypeError, match="'a': expected a module, got Parameter"):
        nn.ModuleDict({"a": nn.parameter(3)})  # type: ignore[dict-item]


def test_names_of_torch_are_refused_with_ours() -> None:
    with pytest.raises(AttributeError, match="'CTCLoss'; use burn.loss.ctc_loss"):
        getattr(nn, "CTCLoss")  # noqa: B009
    for name, remedy in LAYERS.items():
        assert not hasattr(nn, name)
        for word in remedy.replace(",", "").split():
            if word.startswith("nn."):
                assert hasattr(nn, word[3:]), name
            if word.startswith("burn.loss."):
                assert hasattr(loss, word[10:]), name


def test_the_manual_lists_the_names_that_differ() -> None:
    page = (ROOT / "docs" / "migration.md").read_text("utf-8")
    section = page.partition("## From torch.nn")[2].partition("\n## ")[0]
    for name, remedy in LAYERS.items():
        if not name.startswith("Lazy") and not name.endswith("Loss"):
            assert f"`{name}`" in section and remedy in section, name
