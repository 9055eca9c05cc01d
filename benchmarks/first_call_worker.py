"""A process that times the first calls of one model with one engine, by stages.

    python -m benchmarks.first_call_worker ENGINE MODEL CLASS INPUTS KERNELS THREADS \
        CLOCK

``CLOCK`` is ``wall`` or ``processor``.
``MODEL`` is a generated module, whose class is ``CLASS``, or an ONNX file; ``KERNELS``
is the folder of generated kernels. It prints a line of JSON: seconds, or a profile.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from benchmarks.cpu_worker import CLOCKS, generated


class Stages:
    """The seconds of stages that follow each other, by a clock."""

    def __init__(self, clock: str) -> None:
        self.seconds: list[float] = []
        self._clock = CLOCKS[clock]
        self._start = self._clock()

    def end(self) -> None:
        """End a stage and start the next."""
        now = self._clock()
        self.seconds.append(now - self._start)
        self._start = now


def run_ours(
    path: str, name: str, inputs: str, kernels: str, threads: str, clock: str
) -> list[float]:
    """The seconds of our stages."""
    arrays = read_inputs(inputs)
    stages = Stages(clock)
    import burn
    from burn.backend import set_kernel_cache

    set_kernel_cache(kernels)
    stages.end()
    model = generated(path, name)
    stages.end()
    compiled = burn.compile(model)
    tensors = [burn.from_numpy(array) for array in arrays]
    for _ in range(2):
        compiled(*tensors)
        stages.end()
    return stages.seconds


def run_profile(*given: str) -> str:
    """The profile of our stages."""
    import cProfile
    import io
    import pstats

    profile = cProfile.Profile()
    profile.runcall(run_ours, *given)
    text = io.StringIO()
    stats = pstats.Stats(profile, stream=text).strip_dirs()
    stats.sort_stats("tottime").print_stats(25)
    stats.sort_stats("cumulative").print_stats(60)
    return text.getvalue()


def run_onnxruntime(
    path: str, name: str, inputs: str, kernels: str, threads: str, clock: str
) -> list[float]:
    """The seconds of onnxruntime's stages, with its default optimizations."""
    arrays = read_inputs(inputs)
    stages = Stages(clock)
    import onnxruntime

    stages.end()
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(threads)
    session = onnxruntime.InferenceSession(path, options)
    stages.end()
    names = [entry.name for entry in session.get_inputs()]
    for _ in range(2):
        session.run(None, dict(zip(names, arrays, strict=True)))
        stages.end()
    return stages.seconds


CHILDREN: dict[str, Any] = {
    "ours": run_ours,
    "ours-profile": run_profile,
    "onnxruntime": run_onnxruntime,
}


def read_inputs(path: str) -> list[np.ndarray[Any, Any]]:
    """The arrays of a file."""
    with np.load(path) as file:
        return [file[key] for key in file.files]


if __name__ == "__main__":
    print(json.dumps(CHILDREN[sys.argv[1]](*sys.argv[2:])))
