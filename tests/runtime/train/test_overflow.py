"""Training whose loss becomes NaN: a warning, checkpoints and early stopping."""

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, loss, nn, optim, train
from burn.record import open_record
from burn.train.metrics import GradientNorm, Loss
from tests.runtime.train.test_learner import Net, Shuffled


class Overflowing(Shuffled):
    """Batches whose inputs are infinite from the third epoch on."""

    def __iter__(self) -> Any:
        factor = np.float32(np.inf if self.epoch >= 2 else 1.0)
        yield from ((x * factor, y) for x, y in super().__iter__())


def learner(folder: Path, **options: Any) -> train.Learner:
    nn.init.seed(3)
    model = Net().to(Autodiff(Cpu()))

    @train.step(model, optim.SGD(model, lr=0.1))
    def step(x: Any, y: Any) -> train.Classified:
        logits = model(x)
        return train.Classified(loss.cross_entropy(logits, y), logits, y)

    return train.Learner(folder, step, metrics=[Loss()], progress=False, **options)


def is_finite(path: Path) -> bool:
    record = open_record(path)
    weights = [record[key] for key in record if key.startswith("model.")]
    return all(np.isfinite(np.asarray(w)).all() for w in weights)


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@pytest.mark.parametrize("keep", [train.KeepLast(1), train.KeepBest("train/loss")])
def test_the_last_finite_checkpoint_is_kept(
    keep: train.Strategy, tmp_path: Path
) -> None:
    each = learner(tmp_path, checkpoints=keep)
    with pytest.warns(
        RuntimeWarning, match="epoch 3: the loss is NaN .* of epoch 2 is"
    ):
        result = each.fit(Overflowing(), epochs=5)
    assert math.isnan(result.history[-1]["train/loss"])
    finite = {epoch: is_finite(path) for epoch, path in each.stored().items()}
    assert finite == {2: True, 5: False}


def test_the_warning_comes_once(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner(tmp_path).fit(Overflowing(), epochs=5)
    assert sum("the loss is NaN" in str(each.message) for each in caught) == 1


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_patience_ends_training_at_nan(tmp_path: Path) -> None:
    stop = train.Patience(3, "train/loss")
    each = learner(tmp_path, stop=stop)
    history = each.fit(Overflowing(), epochs=9).history
    assert len(history) == 3
    assert stop.reason(history) == "train/loss is nan"
    waiting = train.Patience(3, "train/loss", check_finite=False)
    assert not waiting.is_over(history, {"train/loss": "min"})


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("cause", ["batch", "weights"])
def test_an_anomaly_ends_training_at_its_batch(cause: str, tmp_path: Path) -> None:
    each, batches = learner(tmp_path, detect_anomaly=True), Overflowing()
    message = r"batch 1 of epoch 3: the loss is (nan|inf); the batch has elements"
    if cause == "weights":
        for _, parameter in each.step.model.parameters():
            parameter.set(parameter.value * math.nan)
        message = "batch 1 of epoch 1: the loss is nan; the batch is finite"
    with pytest.raises(FloatingPointError, match=message):
        each.fit(batches, epochs=9)
    finite = {epoch: is_finite(path) for epoch, path in each.stored().items()}
    assert finite == ({2: True} if cause == "batch" else {})


def test_infinite_values_are_not_the_best() -> None:
    history = [{"a": value} for value in (1.0, math.inf, -math.inf, math.nan)]
    assert train.KeepBest("a", "max").kept(history, {}) == {1}
    assert train.KeepBest("a", "min").kept(history, {}) == {1}
    assert train.KeepBest("a", "min").kept(history[1:], {}) == set()


def test_a_step_reports_the_gradient_norm(tmp_path: Path) -> None:
    nn.init.seed(3)
    model = nn.Linear(5, 3).to(Autodiff(Cpu()))
    opt = optim.SGD(model, lr=0.0, clip_norm=0.01)
    x = np.random.default_rng(0).standard_normal((8, 5), np.float32)
    y = np.arange(8) % 3

    @train.step(model, opt)
    def step(x: Any, y: Any) -> Any:
        return loss.cross_entropy(model(x), y)

    gradients = loss.cross_entropy(model(burn.tensor(x)), burn.tensor(y)).backward()
    expected = float(optim.total_norm(gradients.by_name(model)))
    metrics = [Loss(), GradientNorm(opt)]
    each = train.Learner(tmp_path, step, metrics=metrics, progress=False)
    history = each.fit([(x, y), (x, y)], epochs=1).history
    assert history[0]["train/grad_norm"] == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match="expected an optimizer with clip_norm"):
        GradientNorm(optim.SGD(model, lr=0.1))
