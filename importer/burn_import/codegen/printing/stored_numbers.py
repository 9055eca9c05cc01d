"""Parameters of one element, which are emitted as numbers where possible.

A parameter that is read as a tensor anywhere in the class, such as a result, must be a
tensor everywhere: a literal would keep its value when the parameter is trained.
"""

from collections.abc import Iterator
from typing import Any

from burn import Tensor
from burn_import.codegen.printing.expressions import FILLS, WEAK
from burn_import.codegen.trace.function import FunctionTrace
from burn_import.provenance.trainable import is_trained
from burn_import.provenance.weight_owners import original
from burn_import.tracing.scalar_operands import (
    is_number,
    number_in,
    stands_as_number,
    tensor_position,
)
from burn_import.tracing.statements import block_reads, operands, symbols_in
from burn_import.tracing.trace import Apply, Block, Statement, Symbol, blocks_of
from burn_ir.graph import Graph


def unify_number_reads(trace: FunctionTrace, graph: Graph) -> None:
    """Forget the contents of parameters that are numbers only in some places.

    Views of one stored array are treated as one.
    """
    tensors = {s.constant for s in _tensors(trace.body)}
    trained = {original(graph, name) for name in tensors if is_trained(graph, name)}
    for symbol in block_reads(trace.body) if trained else ():
        name = symbol.constant
        is_number = name and number_in(symbol) is not None and is_trained(graph, name)
        if is_number and symbol.type is not None and original(graph, name) in trained:
            symbol.type = symbol.type.forget()


def _tensors(block: Block) -> Iterator[Symbol]:
    """Yield the stored numbers that are printed as tensors in ``block``."""
    read = [symbol for result in block.results for symbol in symbols_in(result)]
    for statement in block.statements:
        read += [s for arg in _tensor_operands(statement) for s in symbols_in(arg)]
        for inner in blocks_of(statement):
            yield from _tensors(inner)
    yield from (s for s in read if s.constant and number_in(s) is not None)


def _tensor_operands(statement: Statement) -> Iterator[Any]:
    if not isinstance(statement, Apply):
        yield from operands(statement)
        return
    name, args = statement.primitive.name, statement.args
    if name in WEAK and all(map(is_number, args)):
        yield args[tensor_position(statement)]
        return
    for position, arg in enumerate(args):
        is_fill = (name, position) in FILLS
        is_weak = name in WEAK and isinstance(arg, Tensor)
        if not is_fill and not (is_weak and stands_as_number(arg, statement)):
            yield arg
