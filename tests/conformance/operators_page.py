"""``python -m tests.conformance.operators_page``: writes ``docs/operators.md``.

What the page says comes from the declarations, the schemas of the installed onnx, the
primitives that an example of each operator calls, and the stored score.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import onnx
from hypothesis import Phase, find, settings
from hypothesis.errors import NoSuchExample

from burn import Tensor
from burn.dtypes import is_float
from burn.primitive import Composite
from burn_import.tracing.trace import Apply, Block, Symbol, Tracer
from burn_ir import Graph, operators
from burn_ir.error_context import FAULTS
from burn_ir.graph import Node
from tests.conformance import cuda
from tests.conformance.score import SCORE
from tests.conftest import ROOT
from tests.ir.test_cuda_operators import LEFT_OUT
from tests.laws import models
from tests.strategies import Example, cases as strategies, examples

PAGE = ROOT / "docs" / "operators.md"
Key = tuple[str, str]
#: Reasons that say less than one that is given for the operator itself.
OF_OPERANDS = (
    "it is made of constants",
    "the result is a bool",
    "the results are integers",
)
#: Types that are named together where an operator takes all of them.
FAMILIES: Mapping[str, frozenset[str]] = {
    "floats": frozenset({"float16", "bfloat16", "float", "double"}),
    "float16, float32, float64": frozenset({"float16", "float", "double"}),
    "integers": frozenset(f"{s}int{n}" for s in ("", "u") for n in (8, 16, 32, 64)),
    "signed integers": frozenset(f"int{n}" for n in (8, 16, 32, 64)),
    "int32, int64": frozenset({"int32", "int64"}),
    "float8": frozenset({"float8e4m3fn", "float8e5m2"})
    | frozenset({"float8e4m3fnuz", "float8e5m2fnuz"}),
    "4 bits": frozenset({"int4", "uint4"}),
    "2 bits": frozenset({"int2", "uint2"}),
    "complex": frozenset({"complex64", "complex128"}),
}
#: The gradient of operators without examples, by the module that declares them.
UNSHOWN = {
    "control": "through its bodies",
    "sequence": "through the items",
    "trees": "no: piecewise constant",
}
#: Results that no gradient leads to.
WHOLE = {"Shape", "Size"}
HEAD = """\
# Operators

Written by `python -m tests.conformance.operators_page`: do not edit.

*versions* are those in which a file may have the operator; an older one is upgraded
when it is read. *types* are those that the newest version allows its first operand.
*gradient* is "yes" if one reaches an operand, else the reason why there is none.
*cases* are those of the ONNX backend suite that were written for the operator alone:
how many pass through the generated source, of how many. *CPU* and *CUDA* say where
values and gradients of random examples are computed and agree; what was left out says
why.
"""


def page() -> str:
    """The text of the page."""
    score = json.loads(SCORE.read_text("utf-8"))
    passed, total = score["total"]
    lines = [
        HEAD,
        f"Of the {total} cases of the suite of onnx {score['onnx']}, {passed} pass.",
    ]
    for domain in sorted({domain for domain, _ in operators() if domain != "burn"}):
        lines += ["", f"## {domain or 'ai.onnx'}", ""]
        lines += ["| operator | versions | types | gradient | CPU | CUDA | cases |"]
        lines += ["|---|---|---|---|---|---|--:|"]
        lines += rows(domain, score["operators"])
    return "\n".join(lines) + "\n"


def rows(domain: str, counts: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """The lines of the table of one domain."""
    on_device = cuda.stored()
    for key, op in sorted(operators().items()):
        if key[0] != domain:
            continue
        name = f"{domain}:{key[1]}" if domain else key[1]
        count = counts.get(name)
        cells = [
            key[1],
            ", ".join(map(str, op.versions)),
            types_of(key, op.versions[-1]),
            gradient_of(key),
            "yes",
            on_device.get(name, f"not run: {LEFT_OUT.get(key[1], 'no examples')}"),
            f"{count[0]}/{count[1]}" if count else "",
        ]
        yield f"| {' | '.join(cells)} |"


def types_of(key: Key, version: int) -> str:
    """The dtypes of the first operand by the schema, families by their names."""
    domain, name = key
    if not onnx.defs.has(name, domain):
        return ""
    schema = onnx.defs.get_schema(name, version, domain)
    if not schema.inputs:
        return ""
    left = {_element(text) for text in schema.inputs[0].types}
    results = []
    for family, members in FAMILIES.items():
        if members <= left:
            results.append(family)
            left -= members
    renamed = {"float": "float32", "double": "float64"}
    return ", ".join([*results, *sorted(renamed.get(text, text) for text in left)])


def _element(text: str) -> str:
    """``float`` of ``tensor(float)`` and of ``optional(seq(tensor(float)))``."""
    return text.rpartition("(")[2].rstrip(")") if "map" not in text else text


def gradient_of(key: Key) -> str:
    """Return "yes", or why there is no gradient, by what examples call."""
    if key[1] in WHOLE:
        return "no: the result depends on extents alone"
    if key not in strategies():
        return UNSHOWN.get(operators()[key].__module__.rpartition(".")[2], "")
    answers: list[str] = []
    reasons: list[tuple[bool, str]] = []

    def is_answered(example: Example) -> bool:
        answer, obstacles = answer_of(key, example)
        answers.append(answer)
        reasons.extend((not _floating(example), reason) for reason in obstacles)
        return answer != ""

    if _is_found(key, is_answered):
        return answers[-1]
    if not reasons:
        return "no: the operands are integers"
    floats_first = [reason for _, reason in sorted(reasons, key=itemgetter(0))]
    of_operator = [reason for reason in floats_first if reason not in OF_OPERANDS]
    of_result = [reason for reason in floats_first if reason != OF_OPERANDS[0]]
    counts = Counter(of_operator or of_result or floats_first)
    return f"no: {counts.most_common(1)[0][0]}"


def answer_of(key: Key, example: Example) -> tuple[str, list[str]]:
    """Return what one example shows, "" where it shows no gradient, and why not."""
    graph = models.built(key, operators()[key].versions[-1], example, stored=False)
    if any(node.op.bodies() for node in graph.nodes):
        return "through its bodies", []
    trails = [trail(graph, node) for node in graph.nodes]
    if all(reaches for reaches, _ in trails):
        return "yes", []
    return "", [reason for _, results in trails for reason in results]


def _is_found(key: Key, condition: Callable[[Example], bool]) -> bool:
    """Return whether some example meets ``condition``; the first one ends the search.

    Many are tried, to have one with floating operands: which are drawn depends on the
    numbers in the project's files, which Hypothesis tries as well.
    """
    every = examples(key, operators()[key].versions[-1])
    rules = settings(
        max_examples=25, derandomize=True, database=None, phases=[Phase.generate]
    )
    try:
        find(every, condition, settings=rules)
    except NoSuchExample:
        return False
    return True


def _floating(example: Example) -> bool:
    return any(isinstance(x, np.ndarray) and is_float(x.dtype) for x in example.inputs)


def trail(graph: Graph, node: Node) -> tuple[bool, list[str]]:
    """Return whether a result has a gradient by an operand, and what stops others."""
    try:
        return traced(graph, node, composites=False)
    except FAULTS:  # its composites want to know what is an intermediate
        return traced(graph, node, composites=True)


def traced(graph: Graph, node: Node, composites: bool) -> tuple[bool, list[str]]:
    """As :func:`trail`, with composites as one call or as what they are made of."""
    block, tracer = Block(), Tracer()
    tracer.keeps_composites = composites
    tracer.blocks.append(block)
    operands = symbols(tracer, graph, node.inputs)
    result = tracer.lower(node.op, operands)
    reached = {t.data for t in operands if t is not None and is_float(t.data.dtype)}
    reasons = []
    for call in block.statements:
        assert isinstance(call, Apply)
        primitive = call.primitive
        if not isinstance(primitive, Composite) and primitive.rule is None:
            reasons.append(primitive.gradient_reason or "")
        elif reached & set(inside(call.args)):
            reached.update(call.targets)
    return bool(reached & set(inside(result))), reasons


def inside(value: Any) -> Iterator[Symbol]:
    """The symbols of the tensors in a value."""
    if isinstance(value, Tensor):
        yield value.data
    elif isinstance(value, list | tuple):
        for item in value:
            yield from inside(item)


def symbols(
    tracer: Tracer, graph: Graph, names: Sequence[str | None]
) -> list[Tensor | None]:
    """Return the symbols to trace a ``lower`` with."""
    return [
        None if name is None else tracer.symbol(graph.type(name), name)
        for name in names
    ]


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
