"""Splitting of long bodies into methods at points with few live values."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import accumulate

from burn import Tensor
from burn.backend import Backend
from burn_import.codegen.trace.function import FunctionTrace
from burn_import.tracing.extents import Extents, MissingExtent
from burn_import.tracing.identifiers import Namespace, singular, snake
from burn_import.tracing.statements import block_reads, reads
from burn_import.tracing.trace import Block, ModuleCall, Statement, Symbol
from burn_ir.dim import Dim

#: Maximum lines of a body that is not split.
LONG = 56
#: Target number of lines of a piece.
PIECE = 28
#: Maximum number of live values at a cut.
NARROW = 4


@dataclass(frozen=True)
class Method:
    """A piece of a body: its name, inputs and results."""

    name: str
    trace: FunctionTrace


def split_into_methods(
    trace: FunctionTrace, lines: int, names: Namespace
) -> list[Method]:
    """Split the statements of ``trace`` into methods, which ``trace`` then calls.

    ``lines`` is the length of the unsplit body. Returns no methods if too many
    values are live at every cut.
    """
    statements = trace.body.statements
    pieces = round(lines / PIECE)
    cuts = list(_cut_positions(trace, pieces)) if lines > LONG and pieces > 1 else []
    if not cuts or trace.states:
        return []
    bounds = [0, *cuts, len(statements)]
    pairs = list(zip(bounds, bounds[1:], strict=False))
    traces = _pieces(trace, pairs)
    methods: list[Method] = []
    calls: list[Statement] = []
    for (start, stop), piece in zip(pairs, traces, strict=False):
        name = names.unique(_name(statements[start:stop]))
        methods.append(Method(name, piece))
        results = [result.data for result in piece.body.results]
        args = tuple(Tensor(s, _backend(trace)) for s in piece.parameters)
        calls.append(ModuleCall((name,), args, results))
    if methods:
        trace.body.statements = calls
    return methods


def _backend(trace: FunctionTrace) -> Backend:
    backend: Backend = trace.body.results[0].backend
    return backend


def _cut_positions(trace: FunctionTrace, pieces: int) -> Iterator[int]:
    """Yield cut positions: about even pieces, where the fewest values are live."""
    statements = trace.body.statements
    alive = _live_counts(trace)
    step = len(statements) / pieces
    last = 0
    for number in range(1, pieces):
        middle = round(number * step)
        slack = int(step * 0.4)
        window = range(max(last + 2, middle - slack), middle + slack + 1)
        fits = [at for at in window if at < len(statements) and alive[at] <= NARROW]
        if fits:
            last = min(fits, key=lambda at: (alive[at], abs(at - middle)))
            yield last


def _live_counts(trace: FunctionTrace) -> list[int]:
    """Return the number of live values before each statement."""
    statements = trace.body.statements
    defined = set(trace.parameters)
    last: dict[Symbol, int] = {}
    for at, statement in enumerate(statements):
        defined.update(statement.targets)
        last.update((symbol, at) for symbol in reads(statement))
    last.update((value.data, len(statements)) for value in trace.body.results)
    counts = [0] * (len(statements) + 2)  # differences, accumulated at the end
    starts = dict.fromkeys(trace.parameters, 0)
    for at, statement in enumerate(statements):
        starts.update(dict.fromkeys(statement.targets, at + 1))
    for symbol, start in starts.items():
        end = last.get(symbol, -1) + 1
        if start < end:
            counts[start] += 1
            counts[end] -= 1
    return list(accumulate(counts))[: len(statements) + 1]


def _pieces(
    trace: FunctionTrace, bounds: Sequence[tuple[int, int]]
) -> list[FunctionTrace]:
    """Return the statements between each pair of ``bounds`` as functions, in order.

    A piece returns the values that the body's results or later pieces read, and
    values whose dimensions they need. Empty if some needed dimension is not
    available.
    """
    needed = {result.data for result in trace.body.results}
    pieces: list[FunctionTrace] = []
    for start, stop in reversed(bounds):
        piece = _piece(trace, start, stop, needed)
        if piece is None:
            return []
        needed.update(piece.parameters)
        pieces.append(piece)
    return pieces[::-1]


def _piece(
    trace: FunctionTrace, start: int, stop: int, needed: Set[Symbol]
) -> FunctionTrace | None:
    """Return statements ``start`` to ``stop`` as a function with results ``needed``.

    None if it needs a dimension that no earlier value has.
    """
    statements = trace.body.statements
    inside = statements[start:stop]
    before = list(trace.parameters)
    before += [t for statement in statements[:start] for t in statement.targets]
    read = set(block_reads(Block(inside)))
    targets = [t for s in inside for t in s.targets if t in needed]
    results = [Tensor(symbol, _backend(trace)) for symbol in targets]
    block = Block(list(inside), results)
    parameters = [symbol for symbol in before if symbol in read]
    while True:
        try:
            Extents(Namespace()).plan(parameters, block)
        except MissingExtent as error:
            having = (s for s in before if _has_extent(s, error.extent))
            source = next(having, None)
            if source is None or source in parameters:
                return None
            parameters.append(source)
            continue
        return FunctionTrace(parameters, block, trace.layers)


def _has_extent(symbol: Symbol, extent: Dim) -> bool:
    shape = None if symbol.type is None else symbol.type.shape
    return shape is not None and extent in shape


def _name(statements: Sequence[Statement]) -> str:
    """Return a name from the first and last modules that a piece calls."""
    paths = [s.path for s in statements if isinstance(s, ModuleCall)]
    words = list(dict.fromkeys(singular(snake(path[0])) for path in paths))
    if len(words) == 1:
        return f"run_{words[0]}"
    return "part"
