"""Where metrics find their inputs, and what they refuse."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, Tensor, loss, nn, optim, train
from burn.train import metrics
from burn.train.metrics import Batch

BATCH = Batch(4, 0.1)
LOGITS = burn.tensor(np.array([[2, 1], [0, 1], [3, 0], [0, 9]], np.float32))
TARGETS = burn.tensor(np.array([0, 1, 1, 1]))


class Output(NamedTuple):
    loss: Tensor
    scores: Tensor
    labels: Tensor


OUTPUT = Output(burn.tensor(0.5), LOGITS, TARGETS)

OF_CLASSES = [
    metrics.Accuracy(),
    metrics.TopK(1),
    metrics.FBeta(2),
    metrics.Precision(2),
    metrics.Recall(2),
    metrics.MeanIoU(2),
    metrics.AUROC(),
]


@pytest.mark.parametrize("metric", OF_CLASSES, ids=lambda metric: metric.name)
def test_inputs_have_names_of_the_output(metric: Any) -> None:
    metric.update(train.Classified(*OUTPUT), BATCH)
    expected = metric.compute()
    outputs = (OUTPUT, OUTPUT._asdict(), ("other", OUTPUT))
    of_fields: dict[str, Any] = {"logits": "scores", "targets": "labels"}
    of_functions: dict[str, Any] = {
        "logits": lambda x: x[1][1],
        "targets": lambda x: x[1][2],
    }
    for output, sources in zip(
        outputs, (of_fields, of_fields, of_functions), strict=True
    ):
        metric.reset()
        metric.reads(**sources).update(output, BATCH)
        assert metric.compute() == expected
    metric.reads(logits="logits", targets="targets")
    message = "returns logits and targets, got Output with loss, scores, labels; "
    with pytest.raises(TypeError, match=message) as caught:
        metric.update(OUTPUT, BATCH)
    assert f"{type(metric).__name__}.reads(logits=..., targets=...)" in str(caught)
    with pytest.raises(TypeError, match=r"reads \['logits', 'targets'\], got \['y'\]"):
        metric.reads(y="labels")


def test_metrics_of_regression() -> None:
    output = train.Regressed(
        burn.tensor(0.0), burn.tensor([[1.0, 2.0]]), burn.tensor([[0.0, 4.0]])
    )
    for metric, expected in (
        (metrics.MeanSquaredError(), (1 + 4) / 2),
        (metrics.MeanAbsoluteError(), (1 + 2) / 2),
    ):
        assert metric.update(output, BATCH) == metric.compute() == expected
        wrong = output._replace(targets=burn.tensor([1.0, 2.0]))
        with pytest.raises(ValueError, match=r"equal shape, got \[1, 2\] and \[2\]"):
            metric.update(wrong, BATCH)


def test_one_score_is_the_logit_of_the_second_class() -> None:
    logits = burn.tensor(np.array([[-1.0], [2.0], [0.5], [-3.0]], np.float32))
    labels = np.array([0, 1, 0, 1])
    for targets in (labels, labels[:, None].astype(np.float32)):
        output = train.Classified(burn.tensor(0.0), logits, burn.tensor(targets))
        accuracy, precision = metrics.Accuracy(), metrics.Precision(2, "micro")
        assert accuracy.update(output, BATCH) == 0.5
        assert precision.update(output, BATCH) == 0.5


def test_shapes_that_do_not_belong_together_are_refused() -> None:
    logits = burn.tensor(np.zeros((2, 5, 7), np.float32))
    output = train.Classified(
        burn.tensor(0.0), logits, burn.tensor(np.zeros((2, 5), np.int64))
    )
    message = (
        r"logits \[N, C, ...\] and targets \[N, ...\], got \[2, 5, 7\] and \[2, 5\]"
    )
    with pytest.raises(ValueError, match=message):
        metrics.Accuracy().update(output, BATCH)


def learner(folder: Path, output: Any, *values: metrics.Metric) -> train.Learner:
    """Return a learner of a linear model whose step returns ``output`` of a loss."""
    model = nn.Linear(3, 2).to(Autodiff(Cpu()))

    @train.step(model, optim.SGD(model, lr=0.1))
    def step(x: Tensor, y: Tensor) -> Any:
        logits = model(x)
        return output(loss.cross_entropy(logits, y), logits, y)

    return train.Learner(folder, step, metrics=values or None, progress=False)


def test_a_step_can_return_a_dict(tmp_path: Path) -> None:
    batch = (np.ones((4, 3), np.float32), np.array([0, 1, 1, 0]))
    accuracy = metrics.Accuracy().reads(targets="labels")
    keys = ("loss", "logits", "labels")
    each = learner(tmp_path, lambda *x: dict(zip(keys, x, strict=True)), accuracy)
    result = each.fit([batch, batch], [batch], epochs=2)
    assert [row["valid/accuracy"] for row in result.history] == [0.5, 0.5]
    pair = learner(tmp_path / "pair", lambda *x: x)
    message = "a named tuple or dict with 'loss' such as train.Classified"
    with pytest.raises(TypeError, match=message):
        pair.fit([batch], epochs=1)


def test_a_batch_without_samples_is_refused(tmp_path: Path) -> None:
    full = (np.ones((4, 3), np.float32), np.array([0, 1, 1, 0]))
    empty = tuple(array[:0] for array in full)
    each = learner(tmp_path, train.Classified)
    message = "expected at least one sample in a batch, got none in batch 2 of epoch 1"
    with pytest.raises(ValueError, match=re.escape(message)):
        each.fit([full, empty], epochs=1)


def test_losses_read_other_scalars() -> None:
    output = {"loss": burn.tensor(2.0), "penalty": burn.tensor(0.5)}
    whole = metrics.Loss()
    part = metrics.Loss("penalty").reads(loss="penalty")
    half = metrics.Loss("half").reads(loss=lambda output: output["loss"] * 0.5)
    for metric, expected in ((whole, 2.0), (part, 0.5), (half, 1.0)):
        assert metric.update(output, BATCH) == expected == metric.compute()
    with pytest.raises(TypeError, match="expected a step that returns rest, got dict"):
        metrics.Loss().reads(loss="rest").update(output, BATCH)


class HighestScore(metrics.Metric):
    """A metric with the name of its class."""

    def initial(self) -> dict[str, Any]:
        return {"score": np.array(-np.inf)}

    def update(self, output: Any, batch: Batch) -> None:
        highest = float(output.logits.numpy().max())
        self.state["score"] = np.maximum(self.state["score"], highest)

    def compute(self) -> float:
        return float(self.state["score"])


class Named(HighestScore):
    name = "best"


def test_a_metric_of_ones_own_is_named_after_its_class() -> None:
    assert HighestScore().name == "highest_score"
    assert Named().name == "best"
    assert Named("other").name == HighestScore("other").name == "other"
    metric = HighestScore()
    metric.update(train.Classified(*OUTPUT), BATCH)
    assert metric.compute() == 9.0
