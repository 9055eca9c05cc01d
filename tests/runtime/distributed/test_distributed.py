"""Several processes train as one does, and end together."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, loss, nn, ops, optim, train
from burn.backend.autodiff import is_in_backward, receiving_gradients
from burn.distributed import Communicator, Mpi, Reducer, average, flatten
from burn.optim.zero import divide
from tests.runtime.distributed import job

JOB = Path(job.__file__)
ROOT = JOB.parents[3]
PACKAGES = ("runtime", "ir", "importer", "templates")


class Alone(Communicator):
    """One process: sums and broadcasts are what is given."""

    rank = 0
    size = 1

    def all_reduce(self, array: Any) -> Any:
        return array.copy()

    def broadcast(self, array: Any, root: int = 0) -> Any:
        return array.copy()

    def barrier(self) -> None:
        pass


def _is_mpich(mpiexec: str) -> bool:
    """Return whether a launcher is MPICH's; Open MPI's refuses to run as root."""
    version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True)
    return "HYDRA" in version.stdout


def start(ranks: int, *command: str) -> subprocess.Popen[str]:
    """Start a program with its arguments, or skip the test without MPI."""
    pytest.importorskip("mpi4py")
    beside = Path(sys.executable).parent / "mpiexec"
    mpiexec = str(beside) if beside.is_file() else shutil.which("mpiexec")
    if mpiexec is None or not _is_mpich(mpiexec):
        pytest.skip("could not import 'mpi4py' with MPICH's mpiexec")
    path = [str(ROOT), *(str(ROOT / name) for name in PACKAGES)]
    return subprocess.Popen(
        [mpiexec, "-n", str(ranks), sys.executable, *command],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.parametrize(
    ("ranks", "mode"),
    [
        (2, "compiled"),
        (4, "compiled"),
        (2, "eager"),
        (2, "accumulate"),
        (2, "buckets"),
        (4, "sharded"),
        (2, "sharded eager"),
        (2, "sharded accumulate"),
    ],
)
@pytest.mark.sampled(4)
def test_ranks_train_as_one_process(ranks: int, mode: str, tmp_path: Path) -> None:
    expected = job.fit(None, **job.OPTIONS[mode])
    run(ranks, mode, tmp_path)
    check(ranks, tmp_path, expected)


@pytest.mark.thorough
def test_divided_state_goes_on_with_another_number_of_ranks(tmp_path: Path) -> None:
    whole = job.fit(None)
    run(2, "first half", tmp_path)
    path = tmp_path / "run.safetensors"
    alone = job.fit(None, epochs=2, resumed=True, checkpoint=copy(path, tmp_path))
    run(3, "second half", tmp_path)
    check(3, tmp_path, whole)
    for name, value in alone.items():
        np.testing.assert_allclose(value, whole[name], rtol=0, atol=1e-6)


@pytest.mark.parametrize("mode", ["learner", "learner sharded"])
def test_learners_of_ranks_have_the_values_of_one(mode: str, tmp_path: Path) -> None:
    expected = job.learn(None, tmp_path / "alone")
    run(2, mode, tmp_path)
    check(2, tmp_path, expected)
    assert sorted(p.name for p in (tmp_path / "run" / "checkpoint").iterdir()) == [
        "checkpoint-3.safetensors"
    ]
    lines = (tmp_path / "run" / "train" / "epoch-1" / "loss.log").read_text()
    assert len(lines.splitlines()) == len(range(0, job.ITEMS, job.BATCH))


def test_a_learner_that_one_rank_interrupts_goes_on_in_all(tmp_path: Path) -> None:
    expected = job.learn(None, tmp_path / "alone")
    run(2, "learner interrupted", tmp_path)
    names = {p.name for p in (tmp_path / "run" / "checkpoint").iterdir()}
    assert names == {"checkpoint-1.safetensors", "interrupted.safetensors"}
    run(2, "learner resumed", tmp_path)
    check(2, tmp_path, expected)


def copy(path: Path, folder: Path) -> Path:
    """Return the path of a copy of a file."""
    return Path(shutil.copy(path, folder / f"copy of {path.name}"))


def run(ranks: int, mode: str, folder: Path) -> None:
    """Run the job to its end."""
    process = start(ranks, str(JOB), mode, str(folder))
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output


def check(ranks: int, folder: Path, expected: dict[str, Any]) -> None:
    """Compare the weights of all ranks, and with those of one process."""
    first = dict(np.load(folder / "0.npz"))
    for rank in range(ranks):
        weights = dict(np.load(folder / f"{rank}.npz"))
        assert weights.keys() == expected.keys()
        for name, value in weights.items():
            np.testing.assert_allclose(value, expected[name], rtol=0, atol=1e-6)
            np.testing.assert_array_equal(value, first[name])


def test_an_error_of_one_rank_ends_the_job(tmp_path: Path) -> None:
    process = start(2, str(JOB), "error", str(tmp_path))
    output, _ = process.communicate(timeout=30)
    assert process.returncode != 0
    assert "rank 1 of 2 failed:" in output
    assert "ValueError: rank 1 found no data" in output


def test_a_killed_rank_ends_the_job(tmp_path: Path) -> None:
    process = start(2, str(JOB), "wait", str(tmp_path))
    try:
        deadline = time.monotonic() + 60
        while len(list(tmp_path.glob("*.started"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        os.kill(int((tmp_path / "1.started").read_text()), signal.SIGKILL)
        output, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode != 0
    assert "KILLED BY SIGNAL" in output or "BAD TERMINATION" in output


def test_means_count_items_and_keep_dtypes() -> None:
    gradients = [
        {"a": burn.tensor(np.full((2, 1), value)), "b": burn.tensor([value])}
        for value in (1.0, 4.0)
    ]
    boxes = {name: burn.Parameter(x) for name, x in gradients[0].items()}
    parts = [flatten(g, n) for g, n in zip(gradients, (2, 1), strict=True)]
    sums = [first + second for first, second in zip(*parts, strict=True)]
    means = average(sums, boxes)
    assert means["a"].dtype == burn.float64
    assert means["a"].tolist() == [[2.0], [2.0]]
    assert (means["b"].dtype, means["b"].tolist()) == (burn.float32, [2.0])


def test_a_step_with_one_process_is_that_without() -> None:
    expected, actual = job.fit(None), job.fit(Alone())
    for name, value in expected.items():
        np.testing.assert_allclose(actual[name], value, rtol=0, atol=1e-6)


def test_batches_without_items_and_unused_parameters_are_refused() -> None:
    model = nn.Linear(2, 2).to(Autodiff(Cpu()))

    def make(function: Any) -> Any:
        opt = optim.SGD(model, lr=0.1)
        return train.step(model, opt, compiled=False, communicator=Alone())(function)

    x = burn.tensor(np.ones((3, 2), np.float32))
    with pytest.raises(ValueError, match="the items of the batch on its first axis"):
        make(lambda: loss.mse_loss(model(x), x))()
    with pytest.raises(ValueError, match=r"not depend on the parameters \['bias'\]"):
        make(lambda x: loss.mse_loss(ops.matmul(x, model.weight), x))(x)


def test_divided_state_is_collected_before_it_is_saved(tmp_path: Path) -> None:
    model = nn.Linear(2, 2).to(Autodiff(Cpu()))
    comm = Alone()
    opt = optim.ZeroRedundancyOptimizer(optim.Adam(model), comm)
    x = burn.tensor(np.ones((3, 2), np.float32))

    def function(x: burn.Tensor) -> burn.Tensor:
        return loss.mse_loss(model(x), x)

    with pytest.raises(ValueError, match="communicator of the ZeroRedundancyOptimizer"):
        train.step(model, opt)(function)
    step = train.step(model, opt, communicator=comm)(function)
    step(x)
    with pytest.raises(RuntimeError, match="consolidate_state_dict"):
        step.save(tmp_path / "run.safetensors")
    opt.consolidate_state_dict()
    assert opt.state_dict().keys() == opt.optimizer.state_dict().keys()
    step.save(tmp_path / "run.safetensors")
    step(x)
    with pytest.raises(RuntimeError, match="consolidate_state_dict"):
        opt.state_dict()


def test_state_is_divided_evenly() -> None:
    names, sizes = "abcdef", (5, 1, 4, 3, 3, 2)
    boxes = {
        name: burn.Parameter(burn.tensor(np.zeros(size, np.float32)))
        for name, size in zip(names, sizes, strict=True)
    }
    owners = divide(boxes, 2)
    loads = [
        sum(s for n, s in zip(names, sizes, strict=True) if owners[n] == r)
        for r in (0, 1)
    ]
    assert sorted(loads) == [9, 9]


@pytest.mark.parametrize("precision", ["float32", "bf16", "fp16"])
def test_sums_begin_before_the_backward_pass_ends(precision: nn.Precision) -> None:
    during: list[bool] = []

    class Watched(Alone):
        def all_reduce(self, array: Any) -> Any:
            during.append(is_in_backward())
            return array.copy()

    model = job.Net().to(Autodiff(Cpu()))
    x = burn.tensor(np.ones((3, 6), np.float32))
    step = train.step(
        *(model, optim.SGD(model, lr=0.1)),
        compiled=False,
        communicator=Watched(),
        bucket_mb=1e-5,
        precision=precision,
    )(lambda x: ops.mean(model(x)))
    step(x)
    assert during == [True] * 4
    with pytest.raises(ValueError, match="bucket_mb > 0"):
        Reducer(Alone(), Cpu(), 0.0)


@pytest.mark.parametrize("compiled", [False, True])
def test_scaled_gradients_are_divided_before_they_are_summed(compiled: bool) -> None:
    x, weights = burn.tensor(np.ones((3, 6), np.float32)), []
    for communicator in (None, Alone()):
        nn.init.seed(3)
        model = job.Net().to(Autodiff(Cpu()))
        step = train.step(
            *(model, optim.SGD(model, lr=0.1)),
            compiled=compiled,
            communicator=communicator,
            precision="fp16",
        )(lambda x, m=model: ops.mean(m(x)))
        for _ in range(3):
            step(x)
        weights.append({k: v.numpy() for k, v in model.state_dict().items()})
    for path, expected in weights[0].items():
        np.testing.assert_allclose(weights[1][path], expected, rtol=1e-6, atol=1e-7)


def test_gradients_are_received_when_nothing_is_added_any_more() -> None:
    model = nn.Linear(2, 2).to(Autodiff(Cpu()))
    x = burn.tensor(np.ones((3, 2), np.float32))
    value = ops.mean(model(model(x)))  # the parameters are used twice
    received: dict[Any, Any] = {}
    with receiving_gradients(received.__setitem__):
        gradients = value.backward()
    assert received.keys() == {model.weight, model.bias}
    for key, gradient in received.items():
        np.testing.assert_array_equal(gradient.numpy(), gradients[key].numpy())


def test_a_step_in_another_plan_runs_as_it_is() -> None:
    model = nn.Linear(2, 2).to(Autodiff(Cpu()))
    x = burn.tensor(np.ones((3, 2), np.float32))
    opt = optim.SGD(model, lr=0.1)
    step = train.step(model, opt, communicator=Alone())(lambda x: ops.mean(model(x)))
    outer = burn.compile(lambda x: step(x) * 1.0)
    assert float(outer(x)) > float(outer(x))
    assert any("in no other plan" in note for note in outer.notes)


def test_mpi_needs_mpi4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ImportError, match=r"burn-runtime\[mpi\]"):
        Mpi()
