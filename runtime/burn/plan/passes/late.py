"""Passes whose modules are imported when a plan has steps for them.

Most plans need half of the passes. Their modules and those of the primitives that they
create take a tenth of the second call of a small model.
"""

from collections.abc import Callable
from functools import wraps
from importlib import import_module

from burn.plan.passes.graph import Graph, Pass, Steps

_PACKAGE = __name__.rpartition(".")[0]


def for_steps(*names: str) -> Callable[[Pass], Pass]:
    """Return a decorator of passes that leave other plans than some as they are.

    These have a step of one of the primitives in each of ``names``, which spaces
    separate.
    """
    alternatives = [frozenset(group.split()) for group in names]

    def decorate(function: Pass) -> Pass:
        @wraps(function)
        def apply(steps: Steps, graph: Graph) -> Steps:
            if any(map(graph.primitives.isdisjoint, alternatives)):
                return steps
            return function(steps, graph)

        return apply

    return decorate


def late(module: str, name: str, *names: str) -> Pass:
    """Return the pass ``name`` of a module of this package, imported when it is needed.

    ``names`` are those of :func:`for_steps`.
    """

    def function(steps: Steps, graph: Graph) -> Steps:
        imported: Pass = getattr(import_module(f"{_PACKAGE}.{module}"), name)
        return imported(steps, graph)

    function.__name__ = name
    return for_steps(*names)(function)
