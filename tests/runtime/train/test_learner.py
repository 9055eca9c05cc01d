"""A learner: epochs, folders, checkpoints that go on to the bit, and early ends."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn import Autodiff, Cpu, Tensor, loss, nn, ops, optim, train
from burn.train.metrics import Accuracy, LearningRate, Loss
from tests.test_house import ROOT


class Net(nn.Module):
    """[N, 5] to three classes, with statistics and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(5, 8)
        self.norm = nn.BatchNorm1d(8)
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(8, 3)

    def __call__(self, x: Tensor) -> Tensor:
        return self.head(self.dropout(ops.relu(self.norm(self.first(x)))))


class Shuffled:
    """Batches in another order in each epoch; the number of the epoch is its state."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.x = rng.standard_normal((44, 5), np.float32)
        self.y = (self.x @ rng.standard_normal((5, 3))).argmax(1)
        self.epoch = 0

    def __iter__(self) -> Iterator[Any]:
        order = np.random.default_rng(self.epoch).permutation(len(self.y))
        self.epoch += 1
        for start in range(0, len(order), 8):
            chosen = order[start : start + 8]
            yield self.x[chosen], self.y[chosen]

    def state_dict(self) -> dict[str, Any]:
        return {"epoch": self.epoch}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.epoch = state["epoch"]


def learner(folder: Path, accumulate: int = 1, **options: Any) -> train.Learner:
    nn.init.seed(3)
    model = Net().to(Autodiff(Cpu()))
    opt = optim.AdamW(model, lr=0.02)

    @train.step(
        model, opt, optim.cosine(opt, 40), accumulate=accumulate, ema=optim.EMA(model)
    )
    def step(x: Tensor, y: Tensor) -> train.Classified:
        logits = model(x)
        return train.Classified(loss.cross_entropy(logits, y), logits, y)

    options = {"metrics": [Loss(), Accuracy(), LearningRate()], **options}
    return train.Learner(folder, step, **options)


@pytest.mark.parametrize("accumulate", [1, 4])
def test_two_and_two_epochs_are_four(
    tmp_path: Path, accumulate: int, capsys: pytest.CaptureFixture[str]
) -> None:
    valid = [(Shuffled().x, Shuffled().y)]
    whole = learner(tmp_path / "a", accumulate).fit(Shuffled(), valid, epochs=4)
    learner(tmp_path / "b", accumulate).fit(Shuffled(), valid, epochs=2)
    parts = learner(tmp_path / "b", accumulate)
    result = parts.fit(Shuffled(), valid, epochs=4, resume=True)
    for name, value in whole.model.state_dict().items():
        np.testing.assert_array_equal(result.model.state_dict()[name].numpy(), value)
    for one, other in zip(whole.history, result.history, strict=True):
        assert other == pytest.approx(one, rel=1e-6)
    name = "checkpoint-4.safetensors"
    paths = [tmp_path / each / "checkpoint" / name for each in "ab"]
    assert [p.name for p in paths[1].parent.iterdir()] == [name]
    sizes = {path.stat().st_size for path in paths}
    assert max(sizes) - min(sizes) < 100
    assert whole.history[-1]["train/loss"] < whole.history[0]["train/loss"]
    assert capsys.readouterr().out.count("epoch 4  train/loss 0.") == 2


def test_a_folder_has_values_of_batches_and_epochs(tmp_path: Path) -> None:
    keep = train.KeepAny(train.KeepLast(2), train.KeepBest("valid/accuracy"))
    each = learner(tmp_path, checkpoints=keep, progress=False)
    result = each.fit(Shuffled(), Shuffled(), epochs=3)
    lines = (tmp_path / "epochs.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"epoch": i, **values} for i, values in enumerate(result.history, 1)
    ]
    log = (tmp_path / "train" / "epoch-2" / "loss.log").read_text().split()
    sizes = [8, 8, 8, 8, 8, 4]
    mean = np.average([float(value) for value in log], weights=sizes)
    assert result.history[1]["train/loss"] == pytest.approx(mean)
    assert (tmp_path / "valid" / "epoch-3" / "accuracy.log").is_file()
    best = int(np.argmax([v["valid/accuracy"] for v in result.history])) + 1
    assert each.stored().keys() == {2, 3, best}
    with pytest.raises(ValueError, match="pass resume=True to go on"):
        each.fit(Shuffled(), epochs=4)


def test_strategies_and_patience_follow_values() -> None:
    history = [{"a": value} for value in (1.0, 3.0, float("nan"), 3.0, 2.0)]
    assert train.KeepBest("a").kept(history, {"a": "max"}) == {2}
    assert train.KeepBest("a", "min").kept(history, {}) == {1}
    assert train.KeepLast(2).kept(history, {}) == {4, 5}
    stop = train.Patience(3, "a", check_finite=False)
    ends = [stop.is_over(history[:n], {"a": "max"}) for n in range(6)]
    assert ends == [False] * 5 + [True]
    assert train.Patience(1, "a", min_delta=5.0, mode="max").is_over(history[:2], {})
    wrong: Any = ("a", 3)
    with pytest.raises(TypeError, match="number of epochs, got 'a'; .*the key second"):
        train.Patience(*wrong)
    with pytest.raises(ValueError, match="expected one of b, .* got 'a'"):
        train.KeepBest("a").kept(history, {"b": "max"})


@pytest.mark.parametrize("valid", [None, Shuffled()])
def test_keys_of_strategies_are_checked_before_training(
    valid: Any, tmp_path: Path
) -> None:
    name = "no" if valid else "accuracy"
    keep = train.KeepAny(train.KeepLast(2), train.KeepBest(f"valid/{name}", "max"))
    each = learner(tmp_path / "a", checkpoints=keep, progress=False)
    with pytest.raises(ValueError, match=f"KeepAny reads 'valid/{name}', expected one"):
        each.fit(Shuffled(), valid, epochs=1)
    stop = train.Patience(2, f"valid/{name}", mode="max")
    each = learner(tmp_path / "a", stop=stop, progress=False)
    with pytest.raises(ValueError, match=f"Patience reads 'valid/{name}'"):
        each.fit(Shuffled(), valid, epochs=1)
    assert not each.stored()


class Foreign:
    """An array of another library, which offers its memory by DLPack."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_arrays_of_other_libraries_are_batches(tmp_path: Path) -> None:
    rows = list(Shuffled())
    others = [{"x": Foreign(x), "y": Foreign(y)} for x, y in rows]
    histories = [
        learner(tmp_path / str(k), progress=False).fit(each, epochs=1).history
        for k, each in enumerate((rows, others))
    ]
    assert histories[0] == histories[1]


def test_a_generator_has_one_epoch(tmp_path: Path) -> None:
    each = learner(tmp_path, progress=False)
    with pytest.raises(ValueError, match="train batch in epoch 2, .* a generator"):
        each.fit((row for row in Shuffled()), epochs=2)


def test_patience_ends_training(tmp_path: Path) -> None:
    stop = train.Patience(2, "train/lr", mode="max")  # it only falls
    result = learner(tmp_path, stop=stop, progress=False).fit(Shuffled(), epochs=9)
    assert len(result.history) == 3


def run(folder: Path) -> "subprocess.Popen[str]":
    code = (
        "import sys; from pathlib import Path\n"
        "from tests.runtime.train.test_learner import Shuffled, learner\n"
        "each = learner(Path(sys.argv[1]))\n"
        "each.fit(Shuffled(), epochs=100000, resume=True)\n"
    )
    paths = [p for p in sys.path if p] + [str(ROOT)]
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_process_that_ends_leaves_a_checkpoint(tmp_path: Path, number: int) -> None:
    rng = np.random.default_rng(number)
    for _ in range(3):
        process = run(tmp_path)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("epoch ")
        time.sleep(rng.uniform(0, 0.2))
        process.send_signal(number)
        _, error = process.communicate(timeout=60)
        assert process.returncode == -number or "KeyboardInterrupt" in error
        each = learner(tmp_path, progress=False)
        epoch = max(each.stored())
        each.fit(Shuffled(), epochs=epoch, resume=True)
        assert len(each.history) == epoch


def test_a_function_is_no_step_and_a_name_no_metric(tmp_path: Path) -> None:
    function: Any = ops.relu
    with pytest.raises(TypeError, match="expected a step that train.step returns"):
        train.Learner(tmp_path, function)
    with pytest.raises(TypeError, match=r"as Accuracy\(\), got 'accuracy'"):
        learner(tmp_path, metrics=["accuracy"])
    with pytest.raises(ValueError, match="different names"):
        learner(tmp_path, metrics=[Loss(), Loss()])


def test_metrics_of_other_batches(tmp_path: Path) -> None:
    each, batches = learner(tmp_path, progress=False), list(Shuffled())
    history = each.fit(batches, batches, epochs=2).history
    files = sorted(path.name for path in tmp_path.rglob("*"))
    before = {k: v.numpy() for k, v in each.step.model.state_dict().items()}
    values = each.evaluate(batches)
    assert values == {
        name: history[-1][f"valid/{name}"] for name in ("loss", "accuracy", "lr")
    }
    for key, value in each.step.model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[key])
    assert sorted(path.name for path in tmp_path.rglob("*")) == files
