"""Bodies that end in a call and return exactly its results."""

from collections.abc import Collection

from burn_import.codegen.printing.name_candidates import MOST_IN_TUPLE
from burn_import.codegen.trace.function import FunctionTrace
from burn_import.tracing.trace import Apply, ModuleCall


def returns_call(
    trace: FunctionTrace,
    statement: Apply | ModuleCall,
    submodules: Collection[tuple[str, ...]] | None,
) -> bool:
    """Return whether ``trace`` can return the results of ``statement`` as they are.

    A long tuple of results gets a class where it is created: only ``submodules``, which
    have one, return such a tuple unchanged. It is None if the function itself returns a
    plain tuple.
    """
    results = [value.data for value in trace.body.results]
    if len(results) < 2 or trace.states or statement.targets != results:
        return False
    needs_class = submodules is not None and len(results) > MOST_IN_TUPLE
    if isinstance(statement, Apply):
        # The number of pieces of a split is unknown to type checkers.
        return bool(statement.primitive.outputs) and not needs_class
    has_class = submodules is not None and statement.path in submodules
    return statement.results is None and (has_class or not needs_class)
