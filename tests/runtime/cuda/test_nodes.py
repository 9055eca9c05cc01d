"""Edges of captured CUDA graphs, on bindings that keep a list of them."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from burn.backend.cuda.graphs.nodes import CudaGraph, wait_for_ends
from burn.backend.cuda.libraries import (
    CaptureMemory,
    Workspaces,
    capturing,
    workspace,
)


@dataclass
class Edge:
    """Data of an edge; type 1 is that of programmatic dependent launch."""

    type: int = 0


@dataclass
class Bindings:
    """Functions of ``cuda.bindings.runtime``, whose nodes are numbers here."""

    edges: list[tuple[int, int, int]]
    counts: bool = True
    cudaGraphEdgeData: Any = Edge  # noqa: N815
    cudaGraph_t: Any = int  # noqa: N815
    calls: list[str] = field(default_factory=list)

    def cudaGraphGetEdges(  # noqa: N802
        self, graph: int, count: int = 0
    ) -> tuple[Any, ...]:
        if not count:
            return (0 if self.counts else 1, [], [], [], len(self.edges))
        rest = [(None, None, 0)] * (count - len(self.edges))
        parts = [list(part) for part in zip(*self.edges, *rest, strict=True)]
        kinds = [Edge(kind) for kind in parts[2]]
        return (0, parts[0], parts[1], kinds, len(self.edges))

    def cudaGraphRemoveDependencies(  # noqa: N802
        self, graph: int, *args: Any
    ) -> tuple[int]:
        self.calls.append("remove")
        for edge in self._given(*args):
            self.edges.remove(edge)
        return (0,)

    def cudaGraphAddDependencies(  # noqa: N802
        self, graph: int, *args: Any
    ) -> tuple[int]:
        self.calls.append("add")
        self.edges += self._given(*args)
        return (0,)

    def _given(self, sources: Any, targets: Any, kinds: Any, count: int) -> Any:
        assert count == len(sources)
        types = [kind.type for kind in kinds]
        return list(zip(sources, targets, types, strict=True))


@dataclass
class OldBindings:
    """Bindings without data of edges."""

    cudaGraph_t: Any = int  # noqa: N815
    cudaGraphRemoveDependencies: Any = None  # noqa: N815
    cudaGraphAddDependencies: Any = None  # noqa: N815

    def cudaGraphGetEdges(  # noqa: N802
        self, graph: int, count: int = 0
    ) -> tuple[Any, ...]:
        return (0, [], [], 0)


def graph() -> Any:
    return CudaGraph.__new__(CudaGraph)


@pytest.mark.parametrize("counts", (True, False))
def test_programmatic_edges_become_plain(counts: bool) -> None:
    bindings = Bindings([(1, 2, 0), (2, 3, 1), (3, 4, 0), (3, 5, 1)], counts)
    captured = graph()
    captured.handle = 7
    assert wait_for_ends(captured, bindings)
    assert sorted(bindings.edges) == [(1, 2, 0), (2, 3, 0), (3, 4, 0), (3, 5, 0)]
    assert bindings.calls == ["remove", "add"]


def test_kernels_that_wait_themselves_may_start_early() -> None:
    bindings = Bindings([(1, 2, 1), (2, 3, 1), (3, 4, 0)])
    captured = graph()
    captured.handle = 7
    assert wait_for_ends(captured, bindings, lambda node: node == 3)
    assert sorted(bindings.edges) == [(1, 2, 0), (2, 3, 1), (3, 4, 0)]


def test_plain_edges_stay() -> None:
    bindings = Bindings([(1, 2, 0), (2, 3, 0)])
    captured = graph()
    captured.handle = 7
    assert wait_for_ends(captured, bindings)
    assert not bindings.calls


def test_a_graph_without_edges() -> None:
    captured = graph()
    captured.handle = 7
    assert wait_for_ends(captured, Bindings([]))


def test_bindings_without_data_of_edges() -> None:
    captured = graph()
    captured.handle = 7
    assert not wait_for_ends(captured, OldBindings())


@pytest.mark.parametrize("separates", (False, True))
def test_library_kernels_wait_outside_of_graphs(
    separates: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    fills: list[int] = []
    monkeypatch.setattr(
        Workspaces, "separate", lambda self, stream: fills.append(stream)
    )
    monkeypatch.setattr(Workspaces, "take", lambda self, size: 0)
    memory = CaptureMemory(None, separates)
    workspace(0, 1, 8)
    with capturing(memory):
        workspace(0, 2, 8)  # the run before the capture
        with memory.recorded():
            workspace(0, 3, 8)
        workspace(0, 4, 8)
    assert fills == ([1, 2, 3, 4] if separates else [1, 2, 4])
