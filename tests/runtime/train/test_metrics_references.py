"""Metrics against scikit-learn and torchmetrics, in batches of different sizes."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import burn
from burn import loss
from burn.train import Classified
from burn.train.metrics import (
    AUROC,
    Accuracy,
    Batch,
    CharErrorRate,
    FBeta,
    Loss,
    MeanIoU,
    Metric,
    Perplexity,
    Precision,
    Recall,
    TopK,
    WordErrorRate,
)

torch: Any = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.torch,
    # They warn of classes without samples, which the cases have.
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
CLASSES = 6
LABELS = range(CLASSES)
SIZES = (7, 1, 23, 12)


def sklearn_metrics() -> Any:
    """Return the module. Its import is left to the tests, for it takes seconds."""
    return pytest.importorskip("sklearn.metrics")


def torchmetrics() -> Any:
    """Return the module. Its import is left to the tests, for it takes seconds."""
    return pytest.importorskip("torchmetrics")


def classification(name: str, **options: Any) -> Callable[[], Any]:
    """Return a function that creates a metric of torchmetrics."""
    return lambda: getattr(torchmetrics().classification, name)(**options)


class Samples(NamedTuple):
    """Logits [N, C], classes [N] and the classes with the highest scores [N]."""

    logits: Any
    targets: Any
    predictions: Any


def draw_samples(seed: int) -> Samples:
    """Return samples without class 5; class 4 occurs, but no prediction is of it."""
    rng = np.random.default_rng(seed)
    targets = rng.integers(0, 5, sum(SIZES))
    targets[0] = 4
    logits = rng.standard_normal((len(targets), CLASSES), np.float32)
    logits[np.arange(len(targets)), targets] += 1
    logits[:, 4:] -= 9
    return Samples(logits, targets, logits.argmax(1))


def run_batches(metric: Metric, samples: Samples) -> float:
    """Return the value of all samples, which come in batches."""
    ends = np.cumsum(SIZES)
    for start, end in zip(ends - SIZES, ends, strict=True):
        logits = burn.tensor(samples.logits[start:end])
        targets = burn.tensor(samples.targets[start:end])
        value = loss.cross_entropy(logits, targets)
        metric.update(Classified(value, logits, targets), Batch(end - start, 0.1))
    return metric.compute()


def run_without_loss(metric: Metric, logits: Any, targets: Any) -> float:
    """Return the value of samples of a step whose loss is 0."""
    ends = np.cumsum(SIZES)
    for start, end in zip(ends - SIZES, ends, strict=True):
        pair = burn.tensor(logits[start:end]), burn.tensor(targets[start:end])
        metric.update(Classified(burn.tensor(0.0), *pair), Batch(end - start, 0.1))
    return metric.compute()


def run_reference(metric: Any, samples: Samples) -> float:
    """Return the value of torchmetrics for the samples."""
    return float(metric(torch.tensor(samples.logits), torch.tensor(samples.targets)))


def score(name: str, **options: Any) -> Callable[[Samples], float]:
    """Return a function of scikit-learn of targets and predictions."""
    return lambda s: float(
        getattr(sklearn_metrics(), name)(s.targets, s.predictions, **options)
    )


def log_loss(samples: Samples) -> float:
    probabilities = torch.softmax(torch.tensor(samples.logits).double(), 1).numpy()
    return float(
        sklearn_metrics().log_loss(samples.targets, probabilities, labels=LABELS)
    )


MACRO = {"average": "macro", "zero_division": 0}
MULTICLASS = {"num_classes": CLASSES}
CASES: dict[
    str, tuple[Metric, Callable[[Samples], float], Callable[[], Any] | None]
] = {
    "accuracy": (
        Accuracy(),
        score("accuracy_score"),
        classification("MulticlassAccuracy", **MULTICLASS, average="micro"),
    ),
    "ignored class": (
        Accuracy(ignore_index=2),
        lambda s: float(np.mean((s.targets == s.predictions)[s.targets != 2])),
        classification(
            "MulticlassAccuracy", **MULTICLASS, average="micro", ignore_index=2
        ),
    ),
    "top 3": (
        TopK(3),
        lambda s: float(
            sklearn_metrics().top_k_accuracy_score(
                s.targets, s.logits, k=3, labels=LABELS
            )
        ),
        classification("MulticlassAccuracy", **MULTICLASS, average="micro", top_k=3),
    ),
    "precision": (
        Precision(CLASSES),
        score("precision_score", **MACRO),
        classification("MulticlassPrecision", **MULTICLASS),
    ),
    "recall": (
        Recall(CLASSES),
        score("recall_score", **MACRO),
        classification("MulticlassRecall", **MULTICLASS),
    ),
    "micro precision": (
        Precision(CLASSES, average="micro"),
        score("precision_score", average="micro"),
        classification("MulticlassPrecision", **MULTICLASS, average="micro"),
    ),
    "f1": (
        FBeta(CLASSES),
        score("f1_score", **MACRO),
        classification("MulticlassF1Score", **MULTICLASS),
    ),
    "f0.5": (
        FBeta(CLASSES, 0.5),
        score("fbeta_score", beta=0.5, **MACRO),
        classification("MulticlassFBetaScore", beta=0.5, **MULTICLASS),
    ),
    "micro f2": (
        FBeta(CLASSES, 2.0, average="micro"),
        score("fbeta_score", beta=2.0, average="micro"),
        classification("MulticlassFBetaScore", beta=2.0, **MULTICLASS, average="micro"),
    ),
    "mean iou": (
        MeanIoU(CLASSES),
        score("jaccard_score", **MACRO),
        classification("MulticlassJaccardIndex", **MULTICLASS),
    ),
    "loss": (Loss(), log_loss, None),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(3))
def test_classes(name: str, seed: int) -> None:
    metric, reference, make_module = CASES[name]
    metric.reset()
    samples = draw_samples(seed)
    value = run_batches(metric, samples)
    assert value == pytest.approx(reference(samples), rel=1e-5)
    if make_module is not None:
        expected = run_reference(make_module(), samples)
        assert value == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("columns", [1, 2])
def test_auroc_of_two_classes_with_ties(columns: int) -> None:
    rng = np.random.default_rng(columns)
    targets = rng.integers(0, 2, sum(SIZES))
    scores = (rng.integers(-3, 3, (len(targets), 1)) + targets[:, None]).astype("f4")
    logits = scores if columns == 1 else np.hstack([scores * 0, scores])
    value = run_without_loss(AUROC(), logits, targets)
    ranks = torch.tensor(scores[:, 0]).sigmoid()
    assert len(np.unique(scores)) < 8
    assert value == pytest.approx(
        sklearn_metrics().roc_auc_score(targets, scores[:, 0])
    )
    expected = classification("BinaryAUROC")()(ranks, torch.tensor(targets))
    assert value == pytest.approx(float(expected))


@pytest.mark.parametrize("seed", range(3))
def test_auroc_of_several_classes(seed: int) -> None:
    samples = draw_samples(seed)
    value = run_batches(AUROC(), samples)
    scores = torch.softmax(torch.tensor(samples.logits).double(), 1).numpy()
    areas = [
        sklearn_metrics().roc_auc_score(samples.targets == label, scores[:, label])
        for label in np.unique(samples.targets)
    ]
    assert value == pytest.approx(np.mean(areas))
    # torchmetrics counts a class without samples as 0; the mean here leaves it out.
    each = classification("MulticlassAUROC", **MULTICLASS, average=None)()
    expected = each(torch.tensor(scores), torch.tensor(samples.targets))
    assert float(expected[5]) == 0
    assert value == pytest.approx(float(expected[:5].mean()))


def test_perplexity() -> None:
    samples = draw_samples(0)
    logits, targets = torch.tensor(samples.logits), torch.tensor(samples.targets)
    expected = torchmetrics().text.Perplexity()(logits[:, None], targets[:, None])
    value = run_batches(Perplexity(), samples)
    assert value == pytest.approx(float(expected), rel=1e-5)


WORDS = ("the", "cat", "sat", "on", "a", "mat", "")


@pytest.mark.parametrize("kind", [WordErrorRate, CharErrorRate])
def test_error_rates(kind: Any) -> None:
    reference = getattr(torchmetrics().text, kind.__name__)
    rng = np.random.default_rng(0)
    ids = rng.integers(0, len(WORDS), (2, sum(SIZES), 9))
    targets = np.where(rng.random(ids.shape[1:]) < 0.6, *ids)

    def decode(row: Any) -> str:
        return " ".join(WORDS[i] for i in row if WORDS[i])

    logits = np.eye(len(WORDS), dtype=np.float32)[ids[0]].transpose(0, 2, 1)
    metric, expected = kind(decode), reference()
    value = run_without_loss(metric, logits, targets)
    expected([*map(decode, ids[0])], [*map(decode, targets)])
    assert 0.2 < value == pytest.approx(float(expected.compute()))
