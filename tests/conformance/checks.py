"""All variants of one case, without comparing equal modules twice.

Many variants of a case have equal graphs, because the case has few inputs, or equal
sources, because no pass applies. Such a variant passes if its equal did.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import onnx

from burn_import.codegen.module.formatting import format_emitted
from burn_import.compiler import compile_graph
from burn_import.options import Options
from burn_import.passes import PASSES, simplify
from burn_import.passes.cleanup.dead_code import dead_code
from burn_import.rewriting.graphs import apply_with_bodies
from burn_ir import Graph
from tests.conformance.compare import assert_similar
from tests.conformance.run import built, executed
from tests.conformance.suite import Case, DataSet
from tests.conformance.variants import Variant
from tests.layout import as_printed

#: The names of the passes that run, or None for the default.
Passes = tuple[str, ...] | None


@dataclass(frozen=True)
class Arrangement:
    """A graph of its own, with the inputs and expected outputs of a data set."""

    graph: Graph
    inputs: Sequence[Any]
    outputs: Sequence[Any]
    #: The number of the data set, and the names of the inputs.
    key: Hashable


class CaseChecker:
    """Comparisons of the generated modules of one case with its expected outputs."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case, self.folder = case, folder
        self._passed: set[Hashable] = set()
        #: The graph of each model, by the model's bytes.
        self._graphs: dict[bytes, Graph] = {}

    def check(self, variant: Variant, is_laid_out: bool) -> None:
        """Compare a variant of the case; lay out its source first if asked to.

        Raises:
            AssertionError: a result is not the expected one.
        """
        for index, data in enumerate(self._data):
            proto = self.case.model()
            inputs = variant.arrange(proto.graph, list(data.inputs))
            content = proto.SerializeToString(deterministic=True)
            whole = (index, content, variant.passes, variant.each_alone)
            if whole in self._passed:
                continue
            graph = self._graph(proto, content)
            arranged = Arrangement(graph, inputs, data.outputs, (index, graph.inputs))
            for passes in pass_lists(variant, graph):
                if (index, content, passes) not in self._passed:
                    self._compare(arranged, passes, is_laid_out)
                    self._passed.add((index, content, passes))
            self._passed.add(whole)

    @cached_property
    def _data(self) -> list[DataSet]:
        return self.case.data_sets(self.case.model().graph)

    def _graph(self, proto: onnx.ModelProto, content: bytes) -> Graph:
        if content not in self._graphs:
            graph = apply_with_bodies(dead_code, built(proto, self.folder))
            self._graphs[content] = graph
        return self._graphs[content]

    def _compare(
        self, arranged: Arrangement, passes: Passes, is_laid_out: bool
    ) -> None:
        options = Options(class_name="Net", passes=passes)
        with as_printed():
            source = compile_graph(arranged.graph, options, options.weights)
        weights = tuple((name, stored_content(x)) for name, x in source.weights)
        key = (arranged.key, source.text, weights)
        if key in self._passed:
            return
        text = format_emitted(source.text) if is_laid_out else source.text
        model = executed(text, source, self.folder)
        assert_similar(model(arranged.inputs), arranged.outputs, self.case.tolerance)
        self._passed.add(key)


def pass_lists(variant: Variant, graph: Graph) -> Iterator[Passes]:
    """Yield the passes of each module of a variant, ``()`` if they change nothing."""
    if variant.each_alone:
        for apply in PASSES:
            if simplify(graph, [apply.__name__]) is not graph:
                yield (apply.__name__,)
    elif variant.passes is not None or simplify(graph) is not graph:
        yield variant.passes
    else:
        yield ()


def stored_content(array: np.ndarray[Any, Any]) -> Hashable:
    """Return a value that is the same for two arrays if they are equal in bits."""
    is_text = array.dtype.hasobject
    content = repr(array.tolist()) if is_text else array.tobytes()
    return str(array.dtype), array.shape, content


class Outcomes:
    """The names of the variants that passed, and the unexpected errors of others."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.errors: list[Exception] = []
        self._name, self._fails = "", False

    def of(self, variant: str, fails: bool) -> Outcomes:
        """Return the context of a variant; ``fails`` says that an error is expected."""
        self._name, self._fails = variant, fails
        return self

    def __enter__(self) -> None:
        """Return nothing; the context has no value."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if error is None and self._fails:
            text = f"variant {self._name!r}: expected to fail, but it passed"
            self.errors.append(AssertionError(text))
        elif error is None:
            self.passed.append(self._name)
        elif isinstance(error, Exception) and not self._fails:
            error.add_note(f"in the variant {self._name!r}")
            self.errors.append(error)
        return isinstance(error, Exception)
