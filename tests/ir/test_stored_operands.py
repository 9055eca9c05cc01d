"""Every operator with any subset of its operands stored in the model.

Which operands are constant determines the form of the source: numbers, lists, shapes,
buffers or parameters. The results must be those of the operands as inputs.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn_import.compiler import compile_graph
from burn_import.options import Options
from burn_ir import Graph, evaluate, operators
from tests.importer.operands.many_nodes import as_list
from tests.laws import compare, models
from tests.laws.emitted import printed_model
from tests.strategies import Example, examples
from tests.strategies.registry import Key

#: Operators that are not called twice with the same result, or whose examples cannot
#: choose, with the reason.
LEFT_OUT: dict[str, str] = {
    **dict.fromkeys(
        ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike"), "random"
    ),
    **dict.fromkeys(("RandomUniform", "RandomUniformLike", "Dropout"), "random"),
    **dict.fromkeys(("CastMap", "DictVectorizer", "ZipMap"), "of maps"),
    "Gradient": "it names values of a graph",
    "ReorderInput": "its result is in blocks",
}
#: Tolerance for plans, whose engine approximates functions.
PLAN = 1e-5
NEWEST = [
    pytest.param(key, op.versions[-1], id=key[1])
    for key, op in sorted(operators().items())
    if key[1] not in LEFT_OUT
]


def storable(example: Example) -> list[int]:
    """Return the positions of operands that may be constant."""
    return [
        i
        for i, x in enumerate(example.inputs)
        if isinstance(x, np.ndarray) and i not in example.always_stored
    ]


def ways(graph: Graph, inputs: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield results of a graph, of its source and of its plan, with a label each."""
    yield "lower", evaluate(graph, inputs)
    source = compile_graph(graph, Options(), "net.safetensors")
    model: Any = printed_model(source)
    yield f"source\n{source.text}", as_list(model(*inputs))
    plan = burn.compile(model)
    for call in (1, 2):
        yield f"plan, call {call}\n{source.text}", as_list(plan(*inputs))


def arrays(values: list[Any]) -> list[Any]:
    return [models.mapped(lambda y: y.numpy(), value) for value in values]


@pytest.mark.parametrize(("key", "version"), NEWEST)
@settings(max_examples=settings().max_examples // 6, deadline=None)
@given(data=st.data())
@pytest.mark.sampled(6)
def test_any_operands_are_stored(key: Key, version: int, data: st.DataObject) -> None:
    example = data.draw(examples(key, version))
    places = storable(example)
    chosen = frozenset(data.draw(st.sets(st.sampled_from(places)))) if places else ()
    plain = replace(example, stored=frozenset())
    expected = arrays(
        evaluate(models.built(key, version, plain, True), models.operands(plain, True))
    )
    given_now = replace(example, stored=frozenset(chosen))
    graph = models.built(key, version, given_now, True)
    for way, actual in ways(graph, models.operands(given_now, True)):
        tolerant = (
            replace(example, atol=max(example.atol, PLAN))
            if way.startswith("plan")
            else example
        )
        try:
            compare.assert_close(arrays(actual), expected, tolerant)
        except AssertionError as error:
            error.add_note(f"operands {sorted(chosen)} are stored: {way}")
            raise
