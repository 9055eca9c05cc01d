"""Every call that writes a file may fail, and the process may be killed in it.

The old content or the new one is there afterwards, and the next writer removes the
temporary files. Faults happen in the middle of each write, and before every other call.
"""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from onnx import helper

import burn
from burn import Autodiff, Cpu, nn, optim, train
from burn.record import RecordError, open_record, write_record
from burn.tensor import Tensor
from burn_import.pipeline import import_model, write_model
from tests.faults import ERRORS, failing, faulty_disk, kill
from tests.forked import run_forked
from tests.importer.onnx_files import graph, model, saved, stored
from tests.modules import import_file

#: Tensors of a file, each of which is a write.
COUNT = 200
#: One in so many writes fails, or ends the process, in a run that is not nightly.
STEP, KILLS = 50, 100


class Format(NamedTuple):
    """Writes a file whose values are multiplied by a factor, and reads the factor."""

    write: Callable[[Path, int], object]
    read: Callable[[Path], float | None]


def write_tensors(folder: Path, factor: int) -> None:
    """Write a record of many tensors."""
    tensors = [(f"x{n}", factor * np.arange(1, n + 2.0)) for n in range(COUNT)]
    write_record(folder / "net.safetensors", tensors)


def read_tensors(folder: Path) -> float:
    """Return the factor of all tensors of a record."""
    record = open_record(folder / "net.safetensors")
    (factor,) = {float(record[name][-1]) / record[name].size for name in record}
    return factor


class Net(nn.Module):
    """A module with many parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.scales = nn.ParameterList([nn.parameter(4) for _ in range(COUNT)])

    def __call__(self, x: Tensor) -> Tensor:
        for scale in self.scales:
            x = x * scale
        return x.sum()


def training(factor: int) -> Any:
    """Return a step of training whose weights are the factor."""
    net = Net().to(Autodiff(Cpu()))
    for scale in net.scales:
        scale.set(burn.tensor(np.full(4, factor, np.float32), backend=Autodiff(Cpu())))
    return train.step(net, optim.SGD(net, lr=0.0, momentum=0.5))(lambda x: net(x))


def write_checkpoint(folder: Path, factor: int) -> None:
    """Write the state of training."""
    training(factor).save(folder / "state.safetensors")


def read_checkpoint(folder: Path) -> float:
    """Return the factor of the weights in a checkpoint."""
    step = training(0)
    step.load(folder / "state.safetensors")
    (factor,) = {float(x) for _, box in step.model.boxes() for x in box.numpy()}
    return factor


def write_pair(folder: Path, factor: int) -> None:
    """Import a model whose weight is the factor."""
    weight = stored("w", np.full(3, factor, np.float32))
    node = helper.make_node("Mul", ["x", "w"], ["y"])
    (folder / "in").mkdir(exist_ok=True)
    source = folder / "in" / "model.onnx"
    saved(source, model(graph([node], initializers=(weight,))))
    write_model(import_model(source), folder / "net.py")


def read_pair(folder: Path) -> float | None:
    """Return the weight of a module; None if the record is not that of the module."""
    try:
        net = import_file(folder / "net.py").Model.load(verify=True)
    except RecordError as error:
        assert "expected the record that Model was written with" in str(error)
        return None
    (factor,) = {float(x) for _, box in net.boxes() for x in box.numpy()}
    return factor


FORMATS = {
    "record": Format(write_tensors, read_tensors),
    "checkpoint": Format(write_checkpoint, read_checkpoint),
    "pair": Format(write_pair, read_pair),
}


@pytest.fixture(params=FORMATS)
def name(request: pytest.FixtureRequest) -> str:
    """The format whose writing is interrupted."""
    return str(request.param)


def left_over(folder: Path) -> list[str]:
    """Return the names of the temporary files in a folder."""
    return sorted(path.name for path in folder.rglob("*.tmp"))


def points(kind: Format, folder: Path, step: int) -> list[int]:
    """Return which calls that write a file are interrupted, after writing it once.

    Of writes one in ``step``, and every other call.
    """
    kind.write(folder, 1)
    with faulty_disk(-1, kill) as calls:
        kind.write(folder, 2)
    kind.write(folder, 1)
    writes = [number for number, call in enumerate(calls) if call == "write"]
    others = [number for number, call in enumerate(calls) if call != "write"]
    return sorted([*writes[::step], *others])


def check_after(kind: Format, folder: Path) -> None:
    """Check that the old or the new file is there, and can be replaced."""
    assert kind.read(folder) in (1, 2, None)
    kind.write(folder, 1)
    assert kind.read(folder) == 1
    assert left_over(folder) == []


def test_every_call_that_writes_may_fail(
    name: str, tmp_path: Path, nightly: bool
) -> None:
    kind = FORMATS[name]
    for number in points(kind, tmp_path, 1 if nightly else STEP):
        error = ERRORS[number % len(ERRORS)]
        with faulty_disk(number, failing(error)), pytest.raises(OSError) as problem:
            kind.write(tmp_path, 2)
        assert problem.value.errno == error
        assert left_over(tmp_path) == []
        check_after(kind, tmp_path)


def write_until_killed(name: str, number: int, folder: Path) -> None:
    """Write a file in a process that ends at a call."""
    with faulty_disk(number, kill):
        FORMATS[name].write(folder, 2)


@pytest.mark.thorough
def test_a_process_may_be_killed_in_every_call(
    name: str, tmp_path: Path, nightly: bool
) -> None:
    kind, folder = FORMATS[name], tmp_path / "files"
    folder.mkdir()
    for number in points(kind, folder, 1 if nightly else KILLS):
        arguments = (write_until_killed, name, number, folder)
        ended = run_forked(*arguments, folder=folder, timeout=300)
        assert ended.code == -signal.SIGKILL, ended.output
        check_after(kind, folder)
