"""Losses against closed forms in NumPy, their gradients against differences."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, Tensor, loss, ops
from tests.runtime.loss.cases import (
    BITS,
    CASES,
    CLASSES,
    COUNTS,
    LOGS,
    SCORES,
    SIGNS,
    SOFT,
    SOME,
    WEIGHT,
    Case,
    X,
    Y,
    softmax,
)

SHARES = np.log(softmax(SCORES, 1))


def smooth() -> Any:
    """The case with ignored classes, weights and smoothing, sample by sample."""
    total = weights = 0.0
    for row, label in zip(SHARES, SOME, strict=True):
        if label >= 0:
            spread = np.full(4, 0.2 / 4)
            spread[label] += 0.8
            total -= (spread * WEIGHT * row).sum()
            weights += WEIGHT[label]
    return total / weights


def huber(delta: float) -> Any:
    size = np.abs(X - Y)
    return np.where(size < delta, size**2 / 2, delta * (size - delta / 2)).mean()


def cosines() -> Any:
    lengths = np.linalg.norm(X, axis=1) * np.linalg.norm(Y, axis=1)
    return (X * Y).sum(1) / lengths


def rates() -> Any:
    large = np.maximum(COUNTS, 2)
    constant = large * np.log(large) - large + np.log(2 * np.pi * large) / 2
    return np.exp(X) - COUNTS * np.log(np.exp(X) + 1e-8) + constant * (COUNTS > 1)


CLOSED: dict[str, Callable[[], Any]] = {
    "classes": lambda: -SHARES[range(5), CLASSES].mean(),
    "none": lambda: -SHARES[range(5), CLASSES],
    "smooth": smooth,
    "ignored": lambda: -SHARES[[0, 2, 4], [0, 1, 2]].mean(),
    "soft": lambda: -(SHARES * SOFT).sum(1).mean(),
    "nll": lambda: -(LOGS[[0, 2, 3], [0, 1, 3]] * WEIGHT[[0, 1, 3]]).sum() / 2.6,
    "bce": lambda: np.logaddexp(0, SCORES * 9 * (1 - 2 * BITS)).mean(),
    "bce_probs": lambda: -np.log(np.where(BITS, SOFT, 1 - SOFT)).mean(),
    "mse": lambda: ((X - Y) ** 2).mean(),
    "l1": lambda: np.abs(X - Y).sum(),
    "huber": lambda: huber(0.7),
    "smooth_l1": lambda: huber(0.7) / 0.7,
    "kl": lambda: -(BITS * LOGS).sum() / 5,
    "kl_log": lambda: (SOFT * (np.log(SOFT) - LOGS)).sum(),
    "poisson": lambda: (np.exp(X) - COUNTS * X).mean(),
    "poisson_rate": lambda: rates().mean(),
    "cosine": lambda: np.where(
        SIGNS > 0, 1 - cosines(), np.maximum(cosines() + 0.2, 0)
    ).mean(),
    "triplet": lambda: np.maximum(
        np.linalg.norm(X - Y + 1e-6, axis=1)
        - np.linalg.norm(X - SCORES + 1e-6, axis=1)
        + 1,
        0,
    ).mean(),
}


def evaluated(case: Case, inputs: Any) -> Tensor:
    rest = [burn.tensor(a) for a in case.rest]
    arrays = {name: burn.tensor(a) for name, a in case.arrays.items()}
    value: Tensor = getattr(loss, case.name)(*inputs, *rest, **case.options, **arrays)
    return value


@pytest.mark.parametrize("name", CLOSED)
def test_values_are_those_of_the_closed_form(name: str) -> None:
    case = CASES[name]
    actual = evaluated(case, [burn.tensor(a) for a in case.inputs]).numpy()
    np.testing.assert_allclose(actual, CLOSED[name](), 1e-9)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_gradients_are_directional_derivatives(case: Case) -> None:
    rng = np.random.default_rng(1)
    ways = [rng.standard_normal(a.shape) for a in case.inputs]
    home = Autodiff(Cpu())
    leaves = [burn.tensor(a, home).require_grad() for a in case.inputs]
    grads = ops.sum(evaluated(case, leaves)).backward()
    pairs = zip(leaves, ways, strict=True)
    actual = sum(float((grads[x].numpy() * way).sum()) for x, way in pairs)

    def along(distance: float) -> float:
        moved = zip(case.inputs, ways, strict=True)
        inputs = [burn.tensor(a + distance * way) for a, way in moved]
        return float(evaluated(case, inputs).numpy().sum())

    expected = (along(1e-6) - along(-1e-6)) / 2e-6
    assert actual == pytest.approx(expected, rel=1e-5, abs=1e-7)


def collapsed(path: tuple[int, ...]) -> tuple[int, ...]:
    """A path without repetitions and blanks."""
    return tuple(label for label, _ in itertools.groupby(path) if label)


@pytest.mark.parametrize("target", [(1, 2), (1, 1), (2,), ()])
def test_ctc_is_the_sum_over_all_paths(target: tuple[int, ...]) -> None:
    probabilities = softmax(np.random.default_rng(2).standard_normal((4, 1, 3)), 2)
    total = sum(
        math.prod(probabilities[step, 0, label] for step, label in enumerate(path))
        for path in itertools.product(range(3), repeat=4)
        if collapsed(path) == target
    )
    padded = np.array([[*target, *[0] * (3 - len(target))]])
    lengths = (burn.tensor([4]), burn.tensor([len(target)]))
    value = loss.ctc_loss(
        burn.tensor(np.log(probabilities)),
        burn.tensor(padded),
        *lengths,
        reduction="sum",
    )
    assert value.item() == pytest.approx(-math.log(total), rel=1e-9)


def test_ctc_without_an_alignment_is_infinite() -> None:
    shares = ops.log_softmax(burn.tensor(np.zeros((3, 1, 3))), axis=2)
    rest = (burn.tensor([[1, 1]]), burn.tensor([2]), burn.tensor([2]))
    assert loss.ctc_loss(shares, *rest).item() == math.inf
    assert loss.ctc_loss(shares, *rest, zero_infinity=True).item() == 0.0


def test_certain_probabilities_have_finite_losses_and_gradients() -> None:
    probs = burn.tensor([0.0, 0.0, 1.0, 1.0], Autodiff(Cpu())).require_grad()
    target = burn.tensor([0.0, 1.0, 0.0, 1.0])
    value = loss.binary_cross_entropy(probs, target, reduction="none")
    np.testing.assert_array_equal(value.numpy(), [0, 100, 100, 0])
    assert np.isfinite(value.sum().backward()[probs].numpy()).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: loss.cross_entropy(x, x[:, 0]), "expected classes as integers"),
        (lambda x: loss.mse_loss(x, x[0]), r"expected a target of shape \[2, 3\]"),
        (lambda x: loss.l1_loss(x, x, reduction="median"), "'mean', got 'median'"),
        (lambda x: loss.cross_entropy(x, burn.tensor([1])), r"classes of shape \[2\]"),
        (
            lambda x: loss.cross_entropy(x, burn.tensor([1, 2]), label_smoothing=2),
            r"label_smoothing in \[0, 1\], got 2",
        ),
        (lambda x: loss.huber_loss(x, x, delta=0), "expected delta > 0, got 0"),
    ],
)
def test_wrong_arguments_are_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(burn.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int32])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_classes_are_integers_of_any_width(dtype: Any, smoothing: float) -> None:
    scores = np.random.default_rng(0).standard_normal((4, 200))
    classes = np.array([0, 5, 3, 127])
    values = [
        loss.cross_entropy(
            burn.tensor(scores), burn.tensor(y), label_smoothing=smoothing
        ).item()
        for y in (classes, classes.astype(dtype))
    ]
    assert values[0] == values[1]


@pytest.mark.parametrize("number", [-1, -3, 3])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_numbers_that_are_no_class(number: int, smoothing: float) -> None:
    x = burn.tensor(np.zeros((4, 3), np.float32))
    wrong, ignored = (burn.tensor(np.array([0, 1, 2, n])) for n in (number, -100))
    message = "expected classes from 0 to 2, or ignore_index=-100"
    with pytest.raises(IndexError, match=message):
        loss.cross_entropy(x, wrong, label_smoothing=smoothing)
    compiled = burn.compile(lambda y: loss.cross_entropy(x, y))
    for _ in range(2):
        compiled(ignored)
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(wrong)
