"""Plans that go take all that they had with them."""

import gc
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, nn, ops, optim, train
from burn.backend.cpu.onednn.binding import engine
from burn.backend.cpu.onednn.binding.memory import Handle
from burn.plan.compiled import PLANS
from burn.plan.plan_ir import Slot
from burn.plan.replay import fill_result
from tests.forked import run_forked
from tests.runtime.onednn import needs_onednn, normal
from tests.runtime.programs import programs_of

pytestmark = pytest.mark.filterwarnings("ignore:.* was recorded for:RuntimeWarning")
BINDS = 100 + 2 * PLANS
MATRIX = burn.Parameter(burn.from_numpy(normal(32, 32)))


def function(x: Any) -> Any:
    y = ops.softmax(ops.relu(x @ MATRIX) @ MATRIX + x)
    if bool(ops.sum(y) > 0):
        return ops.tanh(y) @ MATRIX
    return y


@contextmanager
def without_collector() -> Iterator[None]:
    """Only what nobody refers to goes meanwhile: no cycle is found."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("numpy", [False, True])
def test_plans_that_were_pushed_out_are_gone_at_once(numpy: bool) -> None:
    compiled = burn.compile(function)
    seen: list[Any] = []
    with without_collector(), engine.numpy_only() if numpy else nullcontext():
        for extent in range(1, 40):
            x = burn.from_numpy(normal(extent + 500, 32))
            for _ in range(2):
                compiled(x)
            program = programs_of(compiled)[-1]
            node: Any = program._node
            seen.append((weakref.ref(program), weakref.ref(node.builder.arena)))
            del program, node
        pairs = [
            (program() is not None, arena() is not None) for program, arena in seen
        ]
    assert pairs == [(index >= len(pairs) - PLANS,) * 2 for index in range(len(pairs))]


def test_plans_of_boxes_that_are_set_are_gone_at_once() -> None:
    weight = burn.Parameter(burn.from_numpy(normal(32, 32)))
    compiled = burn.compile(lambda x: ops.relu(x @ weight))
    x = burn.from_numpy(normal(4, 32))
    compiled(x)
    seen = []
    with without_collector():
        for turn in range(3):
            weight.set(burn.from_numpy(normal(32, 32, seed=turn)))
            compiled(x)
            node: Any = programs_of(compiled)[0]._node
            seen.append(weakref.ref(node.builder.arena))
            del node
        alive = sum(ref() is not None for ref in seen)
    assert alive == 1


def resident() -> float:
    """The megabytes of this process that are in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def grown() -> None:
    """Print by how many megabytes memory grows while plans replace others."""
    compiled = burn.compile(function)
    before = 0.0
    with engine.numpy_only():
        for turn in range(BINDS):
            x = burn.from_numpy(np.ones((500 + turn, 32), np.float32))
            compiled(x)
            compiled(x)
            if turn == 2 * PLANS:
                gc.collect()
                before = resident()
    gc.collect()
    print(resident() - before)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells in /proc")
def test_memory_does_not_grow_with_the_plans_there_were(tmp_path: Path) -> None:
    """Each of them has more than 300 kilobytes, and they had 30 megabytes together.

    A process of its own has no memory that earlier tests have left in pieces.
    """
    ended = run_forked(grown, folder=tmp_path, timeout=120)
    assert ended.code == 0, ended.output
    assert float(ended.output.splitlines()[-1]) < 8


def handles() -> int:
    gc.collect()
    return sum(type(result) is Handle for result in gc.get_objects())


@needs_onednn
def test_handles_of_the_library_are_given_back() -> None:
    session = engine.current()
    assert session is not None
    compiled = burn.compile(function)
    counts = []
    for turn in range(BINDS // 10):
        for extent in range(1, 11):  # more than there are plans
            compiled(burn.from_numpy(normal(extent + 40, 32, seed=turn)))
        if turn in (1, BINDS // 10 - 1):
            counts.append(handles())
    assert counts[0] == counts[1]
    held = len(session.primitives)
    del compiled
    session.primitives.clear()
    assert held
    assert handles() < counts[1] - 8 * PLANS


class _Array(np.ndarray[Any, Any]):
    """An array that can be referred to weakly."""


def test_values_of_a_replayed_plan_are_gone_at_once() -> None:
    values: list[Any] = [np.zeros(3).view(_Array) for _ in range(2)]
    seen = [weakref.ref(value) for value in values]
    with without_collector():
        result = fill_result([Slot(1)], values, burn.Cpu())
        del values
        assert [value() is not None for value in seen] == [False, True]
        del result
        assert [value() is not None for value in seen] == [False, False]


def test_recordings_are_gone_without_the_garbage_collector() -> None:
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(Autodiff(Cpu()))
    step = train.step(net, optim.SGD(net, lr=0.1))(lambda x: ops.mean(net(x) ** 2.0))
    x = burn.from_numpy(normal(3, 4))
    gc.collect()
    flags = gc.get_debug()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        step(x)
        gc.collect()
        kinds = {type(found).__name__ for found in gc.garbage}
    finally:
        gc.set_debug(flags)
        gc.garbage.clear()
        gc.enable()
    assert not kinds & {"Recorder", "RecordedValue", "Graph", "Tensor", "Step"}
