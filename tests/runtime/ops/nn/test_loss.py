"""Losses of classification by value and by gradient."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from tests.runtime.gradcheck import check_gradient
from tests.runtime.onnx_node import run_node as run_opset

run_node = partial(run_opset, opset=13)

RNG = np.random.default_rng(7)
SCORES = RNG.standard_normal((4, 5, 3, 2))
TARGET = RNG.integers(0, 5, (4, 3, 2))
WEIGHT = RNG.random(5) + 0.1


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignored", [None, 2, -100])
def test_losses(reduction: str, weighted: bool, ignored: int | None) -> None:
    target = np.where(TARGET == 2, ignored, TARGET) if ignored else TARGET
    weights = [WEIGHT] if weighted else []
    attrs: dict[str, Any] = {"reduction": reduction}
    attrs |= {} if ignored is None else {"ignore_index": ignored}
    operands = [burn.tensor(x) for x in (SCORES, target, *weights)]
    (expected,) = run_node(
        "SoftmaxCrossEntropyLoss", SCORES, target.astype(np.int64), *weights, **attrs
    )
    got = ops.cross_entropy(*operands, **attrs)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6)
    logs = ops.log_softmax(operands[0], axis=1)
    same = ops.nll_loss(logs, *operands[1:], **attrs)
    np.testing.assert_array_equal(same.numpy(), got.numpy())
    check_gradient(
        lambda x, *w: ops.cross_entropy(x, operands[1], *w, **attrs), SCORES, *weights
    )


def test_what_is_ignored_counts_for_nothing() -> None:
    x = burn.tensor(np.array([[-np.inf, -1.0], [-2.0, -3.0]]))
    target = burn.tensor(np.array([0, 1]))
    assert ops.nll_loss(x, target, ignore_index=0).item() == 3.0
    assert np.isnan(ops.nll_loss(x, burn.tensor([7, 7]), ignore_index=7).item())


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_weights_of_classes_that_do_not_occur_are_not_read(bad: float) -> None:
    x = burn.tensor([[[-1.0], [-2.0], [-5.0]], [[-4.0], [-3.0], [-6.0]]])
    target = burn.tensor([[1], [2]])
    weight = burn.tensor([bad, 2.0, 3.0])
    for ignored in (2, 7):
        actual = ops.nll_loss(x, target, weight, ignore_index=ignored).item()
        kept = [2.0] if ignored == 2 else [2.0, 6.0]
        weights = [2.0, 3.0][: len(kept)]
        expected = np.dot(kept, weights) / sum(weights)
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_reductions_have_names() -> None:
    with pytest.raises(ValueError, match="'average'"):
        ops.nll_loss(burn.tensor(SCORES), burn.tensor(TARGET), reduction="average")


@pytest.mark.parametrize("shape", [(4, 3, 1), (4, 3, 4), (1, 3, 2), (4, 6), (24,)])
@pytest.mark.parametrize("loss", [ops.nll_loss, ops.cross_entropy])
def test_targets_have_the_extents_of_the_scores(loss: Any, shape: Any) -> None:
    target = burn.tensor(np.zeros(shape, np.int64))
    with pytest.raises(ValueError, match=r"targets of shape \[4, 3, 2\]") as caught:
        loss(burn.tensor(SCORES), target)
    assert f"got {list(shape)}" in str(caught.value)
