"""Graphs of cuDNN of one convolution and its epilogue, with one or several plans."""

import threading
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from burn import dtypes
from burn.backend.cuda.choices import read_choice, write_choice
from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.convolution.layouts import Layout
from burn.backend.cuda.libraries import WORKSPACE, cudnn, cudnn_handle, workspace
from burn.backend.cuda.tuning import keeps_nan, quickest
from burn.ops.support import Array

#: Names of the element types in cuDNN.
TYPES = {
    np.dtype(np.float32): "FLOAT",
    np.dtype(np.float16): "HALF",
    dtypes.bfloat16: "BFLOAT16",
}
#: The maximum number of cached graphs per thread; the oldest are evicted first.
_LIMIT = 512
#: The most plans of the heuristics that are measured for a graph, and the seconds after
#: which no more are built: cuDNN compiles some of them.
_PLANS, _SECONDS = 6, 0.1
#: The identifier of the first operand of a graph; those of the others follow.
_FIRST_UID = 1
#: Numerical notes of plans that are never taken: some round float32 operands to
#: float16, so that numbers above 65504 become infinite, and some sum in float16.
_INEXACT = ("DOWN_CONVERT_INPUTS", "REDUCED_PRECISION_REDUCTION")


class Convolution:
    """A cuDNN graph of one convolution.

    It has the first plan of cuDNN's heuristics. With a ``key`` it has several, of which
    :meth:`tune` selects the fastest, or the plan that an earlier process selected.

    Raises:
        RuntimeError: cuDNN has no plan for it.
    """

    def __init__(
        self,
        device: int,
        dtype: Any,
        layout: Layout,
        build: Callable[["Convolution"], tuple[Any, ...]],
        key: Any = None,
    ) -> None:
        self.library, self.layout = cudnn(), layout
        self._device, self._plans = device, list[int]()
        is_exact = dtype == np.float32 and not Cuda(device).tf32
        self._key = None if is_exact or key is None else (_INEXACT, key)
        if not self._restore():
            self._build(dtype, build, is_exact)
        self._size = self.graph.get_workspace_size()

    def _restore(self) -> bool:
        """Return whether an earlier process selected a plan, and restore it."""
        content = None if self._key is None else read_choice(self._device, self._key)
        if content is None:
            return False
        handle = cudnn_handle(self._device, 0)
        self.graph = self.library.pygraph(handle=handle)
        try:
            self.graph.deserialize(handle, list(content))
        except (RuntimeError, self.library.cudnnGraphNotSupportedError):
            return False
        return True

    def _build(
        self,
        dtype: Any,
        build: Callable[["Convolution"], tuple[Any, ...]],
        is_exact: bool,
    ) -> None:
        """Build the graph from its operations, with one plan or several."""
        types, modes = self.library.data_type, self.library.heur_mode
        notes = (*_INEXACT, "TENSOR_CORE") if is_exact else _INEXACT
        graph = self.graph = self.library.pygraph(
            handle=cudnn_handle(self._device, 0),
            io_data_type=getattr(types, TYPES[dtype]),
            intermediate_data_type=types.FLOAT,
            compute_data_type=types.FLOAT,
        )
        operands = build(self)
        operands[-1].set_output(True)
        for number, operand in enumerate(operands):
            operand.set_uid(_FIRST_UID + number)
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([modes.A, modes.FALLBACK])
        graph.deselect_numeric_notes(
            [getattr(self.library.numerical_note, note) for note in notes]
        )
        graph.check_support()
        if self._key is None:
            graph.build_plans()
        else:
            self._plans = self._built(_PLANS)

    def _built(self, most: int) -> list[int]:
        """Return the first plans that can be built, of which the last is selected.

        Those that need much scratch memory are not taken if there are others.
        """
        graph, plans, small = self.graph, list[int](), list[int]()
        unsupported, start = self.library.cudnnGraphNotSupportedError, perf_counter()
        for index in range(graph.get_execution_plan_count()):
            try:
                graph.build_plan_at_index(index)
            except (RuntimeError, unsupported):
                continue
            plans.append(index)
            if graph.get_workspace_size() <= WORKSPACE:
                small.append(index)
            if len(small) == most or (small and perf_counter() - start > _SECONDS):
                break
        if not plans:
            raise RuntimeError("none of cuDNN's plans can be built")
        return small or plans

    def tensor(self, name: str, shape: tuple[int, ...]) -> Any:
        """Return a dense operand of the graph."""
        strides = self.layout.strides(shape)
        return self.graph.tensor(name=name, dim=list(shape), stride=list(strides))

    def tune(self, arrays: tuple[Array, ...], has_relu: bool = False) -> bool:
        """Select the fastest plan on these operands; the last one is the output.

        The result is False if the graph has a ReLU, and no plan keeps NaN in it.
        """
        plans, self._plans = self._plans, []
        if plans and has_relu:
            plans = [plan for plan in plans if self._keeps_nan(arrays, plan)]
            if not plans:
                return False
        if plans:
            self._select(quickest(plans, partial(self._run, arrays), self._device))
            content = bytes(self.graph.serialize())
            write_choice(self._device, self._key, content)
        return True

    def _keeps_nan(self, arrays: tuple[Array, ...], plan: int) -> bool:
        image, weight, *others = arrays
        return keeps_nan(
            lambda nan: self._run((image, nan, *others), plan), weight, arrays[-1]
        )

    def _select(self, plan: int) -> None:
        self.graph.build_plan_at_index(plan)
        self._size = self.graph.get_workspace_size()

    def run(self, *arrays: Array) -> None:
        """Compute on CuPy's current stream; the last array is the output."""
        self._run(arrays)

    def _run(self, arrays: tuple[Array, ...], plan: int | None = None) -> None:
        import cupy

        stream = cupy.cuda.get_current_stream().ptr
        operands = {
            _FIRST_UID + number: array.data.ptr for number, array in enumerate(arrays)
        }
        handle = cudnn_handle(self._device, stream)
        if plan is None:
            space = workspace(self._device, stream, self._size)
            self.graph.execute(operands, space, handle=handle)
        else:
            size = self.graph.get_workspace_size_plan_at_index(plan)
            space = workspace(self._device, stream, size)
            self.graph.execute_plan_at_index(operands, space, plan, handle=handle)


class Graphs(threading.local):
    """A cache of the graphs of a thread."""

    def __init__(self) -> None:
        self._built: dict[Any, Any] = {}

    def get(self, key: Any, build: Callable[[], Any]) -> Any:
        """Return the graph of ``key``, built at its first use."""
        if key not in self._built:
            self._built[key] = build()
            if len(self._built) > _LIMIT:
                self._built.pop(next(iter(self._built)))
        return self._built[key]

    def refuse(self, key: Any) -> None:
        """Keep None for ``key``: its graph cannot be used."""
        self._built[key] = None


GRAPHS = Graphs()
