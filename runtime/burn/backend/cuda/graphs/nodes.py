"""Captured CUDA graphs: nodes, edges and launches.

In ``cuda.bindings`` for CUDA 12, functions with edge data have names that end in
``_v2``; CUDA 13 has no other variants.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from burn.backend.cuda.dependent_launch import EARLY

# cudaGraphNodeType, cudaMemcpyKind and cudaMemoryType
_KERNEL, _COPY, _FILL, _EMPTY = 0, 1, 2, 5
_FROM_DEVICE_TO_DEVICE, _BY_ADDRESS = 3, 4
_ON_DEVICE = (2, 3)
#: The capacity for edges if their number is unknown.
_EDGES = 1 << 14


class CudaGraph:
    """A launchable graph, which owns the ``handle`` of a capture."""

    def __init__(self, handle: int) -> None:
        from cupy.cuda import runtime

        self._runtime, self._executable = runtime, 0
        self.handle = handle

    def launch(self, stream: Any) -> None:
        """Launch the graph on ``stream``."""
        if not self._executable:
            self._executable = self._runtime.graphInstantiate(self.handle)
        self._runtime.graphLaunch(self._executable, stream.ptr)

    def __del__(self) -> None:
        with suppress(RuntimeError, AttributeError, TypeError):  # at the end of Python
            if self._executable:
                self._runtime.graphExecDestroy(self._executable)
            self._runtime.graphDestroy(self.handle)


@contextmanager
def capturing_graph(stream: Any) -> Iterator[list[CudaGraph]]:
    """Capture the work on ``stream``; the list contains the graph afterwards."""
    from cupy.cuda import runtime

    graphs: list[CudaGraph] = []
    stream.begin_capture()
    try:
        yield graphs
        graphs.append(CudaGraph(runtime.streamEndCapture(stream.ptr)))
    finally:
        if not graphs:
            with suppress(
                RuntimeError
            ):  # a forbidden call has ended the capture already
                stream.end_capture()


def bindings() -> Any:
    """Return the module ``cuda.bindings.runtime``.

    Raises:
        RuntimeError: it is not installed.
    """
    try:
        from cuda.bindings import runtime
    except ImportError as error:
        raise RuntimeError(f"its nodes cannot be checked: {error}") from error
    return runtime


def check_nodes(graph: CudaGraph) -> int:
    """Return the number of kernels of a graph that only computes on the device.

    A copy from host memory would read that memory in each launch, after it was freed.

    Raises:
        RuntimeError: the graph copies from or to the host, or calls a host function.
    """
    runtime = bindings()
    handle = runtime.cudaGraph_t(graph.handle)
    _, _, count = _check_status(runtime.cudaGraphGetNodes(handle))
    _, nodes, _ = _check_status(runtime.cudaGraphGetNodes(handle, count))
    kernels = 0
    for node in nodes:
        kind = int(_check_status(runtime.cudaGraphNodeGetType(node))[1])
        kernels += kind == _KERNEL
        if kind == _COPY:
            _check_copy(runtime, node)
        elif kind not in (_KERNEL, _FILL, _EMPTY):
            raise RuntimeError(f"a kernel adds a node of type {kind}")
    return kernels


def _check_copy(runtime: Any, node: Any) -> None:
    _, copy = _check_status(runtime.cudaGraphMemcpyNodeGetParams(node))
    if int(copy.kind) == _FROM_DEVICE_TO_DEVICE:
        return
    if int(copy.kind) == _BY_ADDRESS:
        ends = (copy.srcPtr.ptr, copy.dstPtr.ptr)
        kinds = [
            _check_status(runtime.cudaPointerGetAttributes(end))[1] for end in ends
        ]
        if all(int(attributes.type) in _ON_DEVICE for attributes in kinds):
            return
    raise RuntimeError("a kernel copies between the host and the device")


def wait_for_ends(
    graph: CudaGraph,
    runtime: Any = None,
    may_start: Callable[[Any], bool] | None = None,
) -> bool:
    """Replace programmatic edges by full dependencies.

    NVIDIA's libraries launch kernels with programmatic dependent launch: the next
    kernel on the stream starts before they end and, unless it is a library kernel, does
    not wait for their results. Such edges become full dependencies, except to nodes
    that ``may_start`` early. Return False, with the graph unchanged, if the bindings do
    not support edge data.
    """
    runtime = runtime or bindings()
    names = ("GetEdges", "RemoveDependencies", "AddDependencies")
    version = "_v2" if hasattr(runtime, "cudaGraphGetEdges_v2") else ""
    get, remove, add = (getattr(runtime, f"cudaGraph{n}{version}") for n in names)
    handle = runtime.cudaGraph_t(graph.handle)
    answer = get(handle)
    if len(answer) != 5:
        return False
    # It is not documented whether edges can be counted without a buffer for their data.
    most = _EDGES if int(answer[0]) else answer[-1]
    _, sources, targets, kinds, count = _check_status(get(handle, most))
    edges = list(zip(sources, targets, kinds, strict=True))[:count]
    early = [edge for edge in edges if int(edge[2].type)]
    if may_start is not None:
        early = [edge for edge in early if not may_start(edge[1])]
    if not early:
        return True
    ends = [list(part) for part in zip(*early, strict=True)]
    _check_status(remove(handle, *ends, len(early)))
    plain = [runtime.cudaGraphEdgeData() for _ in early]
    _check_status(add(handle, *ends[:2], plain, len(early)))
    return True


def starts_early(node: Any) -> bool:
    """Return whether a node is one of our kernels that waits for its predecessors."""
    from cuda.bindings import driver

    answer = driver.cuGraphKernelNodeGetParams(driver.CUgraphNode(int(node)))
    return not int(answer[0]) and int(answer[1].func) in EARLY


def _check_status(answer: tuple[Any, ...]) -> tuple[Any, ...]:
    if int(answer[0]):
        raise RuntimeError(f"its nodes cannot be read: {answer[0]}")
    return answer
