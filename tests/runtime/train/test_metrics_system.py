"""Metrics of the machine: processor time and memory; those of a GPU need one."""

import math
import mmap
import sys
import time
from typing import Any

import pytest

from burn.train.metrics import Batch, CpuUse, GpuMemoryUse, GpuUse, MemoryUse
from burn.train.metrics.metric import Metric

BATCH = Batch(1, 0.1)


def keep_busy(seconds: float) -> None:
    """Use a core for ``seconds`` of processor time."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_processor_time_is_a_share_of_the_time() -> None:
    metric = CpuUse()
    assert metric.update(None, BATCH) is None
    assert math.isnan(metric.compute())
    time.sleep(0.2)
    idle = metric.update(None, BATCH)
    keep_busy(0.2)
    busy = metric.update(None, BATCH)
    assert idle is not None
    assert busy is not None
    assert 0 <= idle < busy
    assert idle < metric.compute() < busy
    state = metric.state_dict()
    metric.merge([{"busy": 3.0, "seconds": 2.0}, {"busy": 1.0, "seconds": 2.0}])
    assert metric.compute() == 100
    metric.load_state_dict(state)
    assert metric.compute() < busy


def test_memory_is_the_peak_of_the_epoch() -> None:
    pytest.importorskip("psutil")
    metric = MemoryUse()
    assert math.isnan(metric.compute())
    before = metric.update(None, BATCH)
    block = mmap.mmap(-1, 64 * 2**20)  # no allocator has kept such pages of other tests
    block.write(b"x" * len(block))
    during = metric.update(None, BATCH)
    assert during - before == pytest.approx(64, abs=16)
    assert metric.compute() == during
    block.close()
    after = metric.update(None, BATCH)
    assert after < during == metric.compute()
    metric.reset()
    metric.update(None, BATCH)
    assert metric.compute() < during
    metric.merge([{"peak": 5.0}, {"peak": math.nan}, {"peak": 7.0}])
    assert metric.compute() == 7


@pytest.mark.parametrize(
    ("kind", "module"), [(MemoryUse, "psutil"), (GpuMemoryUse, "cupy.cuda.runtime")]
)
def test_a_missing_library_is_named(
    kind: Any, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    message = rf"{kind.__name__} needs {module.split('.')[0]}: pip install"
    with pytest.raises(ImportError, match=message):
        kind()


@pytest.mark.cuda
def test_metrics_of_a_gpu() -> None:
    cupy = pytest.importorskip("cupy")
    metric: Metric = GpuMemoryUse()
    block = cupy.ones(256 * 2**20, cupy.uint8)
    during = metric.update(None, BATCH)
    assert during is not None
    assert during >= block.nbytes / 2**20  # other processes may use more or less
    assert metric.compute() == during
    pytest.importorskip("pynvml")
    use = GpuUse()
    value = use.update(None, BATCH)
    assert 0 <= value <= 100
    assert use.compute() == value
