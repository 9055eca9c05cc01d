"""A process that computes one model with one engine, when it is told to.

    python -m benchmarks.cpu_worker ENGINE MODEL CLASS INPUTS THREADS CLOCK

``MODEL`` is a generated module, whose class is ``CLASS``, or an ONNX file. Before
anything else it says how long importing and the first call took. Every line that comes
in is a number of seconds to compute for; the answer is a line of JSON: the seconds of
each call, by a clock on the wall or the processor's (``wall``, ``processor``). At the
end of its input it says how much memory it had at most.
"""

from __future__ import annotations

import json
import sys
from time import perf_counter, process_time

STARTED = perf_counter()

from collections.abc import Callable  # noqa: E402
from functools import partial  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

#: The seconds of calls that are timed together, and of the quickest one.
TOGETHER, LEAST = 1e-4, 1e-6
CLOCKS = {"wall": perf_counter, "processor": process_time}


def generated(path: str, name: str) -> Callable[..., Any]:
    """A generated module with its weights."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("model", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model: Callable[..., Any] = getattr(module, name).load()
    return model


def ours(path: str, name: str, inputs: list[Any], threads: int) -> Callable[[], Any]:
    """A call of a generated module."""
    import burn

    model = generated(path, name)
    tensors = [burn.from_numpy(array) for array in inputs]
    return lambda: model(*tensors)


def onnxruntime(
    path: str, name: str, inputs: list[Any], threads: int
) -> Callable[[], Any]:
    """A call of onnxruntime, with its default optimizations."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options)
    names = [entry.name for entry in session.get_inputs()]
    feeds = dict(zip(names, inputs, strict=True))
    return lambda: session.run(None, feeds)


def arrays(results: Any) -> list[Any]:
    """The results as arrays."""
    results = results if isinstance(results, tuple | list) else (results,)
    return [np.asarray(result) for result in results]


def openvino(
    path: str, name: str, inputs: list[Any], threads: int
) -> Callable[[], Any]:
    """A call of OpenVINO, with the precision that it chooses itself."""
    import openvino as ov

    options = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
    request = ov.compile_model(path, "CPU", options).create_infer_request()
    return lambda: list(request.infer(inputs).values())


def compiled(
    path: str,
    name: str,
    inputs: list[Any],
    threads: int,
    *,
    precision: str = "float32",
    kernels: bool | None = None,
) -> Callable[[], Any]:
    """A call of a generated module that is compiled."""
    import burn

    # Its inputs are arguments: what is constant would be computed once.
    tensors = [burn.from_numpy(array) for array in inputs]
    given = [tuple(tensors)] if precision == "int8" else []
    module = generated(path, name)
    model = burn.compile(
        module, precision=precision, calibration=given, generated=kernels
    )
    model(*tensors)
    return lambda: model(*tensors)


ENGINES: dict[str, Callable[..., Callable[[], Any]]] = {
    "ours": ours,
    "compiled": compiled,
    "generated": partial(compiled, kernels=True),
    "bf16": partial(compiled, precision="bf16"),
    "int8": partial(compiled, precision="int8"),
    "numpy": ours,
    "onnxruntime": onnxruntime,
    "onnxruntime-int8": onnxruntime,
    "openvino": openvino,
}


def main() -> None:
    """Answer every line."""
    engine, path, name, given, threads, clock = sys.argv[1:]
    with np.load(given) as file:
        inputs = [file[key] for key in file.files]
    call = ENGINES[engine](path, name, inputs, int(threads))
    first = arrays(call())
    taken = perf_counter() - STARTED
    with open(f"{given}.{engine}.npz", "wb") as target:
        np.savez(target, *first)
    print(json.dumps(taken), flush=True)
    for line in sys.stdin:
        print(json.dumps(timed(call, float(line), CLOCKS[clock])), flush=True)
    print(most_memory(), flush=True)


def most_memory() -> int:
    """The bytes of memory that this process had at most (its parent's do not count)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = [line for line in lines if line.startswith("VmHWM")]
    return int(peak.split()[1]) * 1024


def timed(
    call: Callable[[], Any], seconds: float, clock: Callable[[], float]
) -> list[float]:
    """The seconds of calls, one at least; the first of a turn is not counted.

    Quick calls are timed together: the processor's clock may move by microseconds.
    """
    started = clock()
    call()
    count = max(int(TOGETHER / max(clock() - started, LEAST)), 1)
    times: list[float] = []
    while sum(times) * count < seconds:
        started = clock()
        for _ in range(count):
            call()
        times.append((clock() - started) / count)
    return times


if __name__ == "__main__":
    main()
