"""Names of values without a noun, from the primitive that reads them."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from burn import Tensor
from burn_import.codegen.trace.primitive_parameters import parameters
from burn_import.tracing.statements import operands, symbols_in
from burn_import.tracing.trace import Apply, Block, Statement, Symbol, blocks_of

#: Parameter names that do not describe an operand.
VAGUE_PARAMETERS = frozenset({"args", "left", "right", "other", "data", "xs"})
#: Primitives whose result is a view of the operand.
MOVES = frozenset(
    {"reshape", "unsqueeze", "squeeze", "expand", "transpose", "permute", "cast"}
    | {"split_heads"}
)
#: Primitives whose operand is a gate.
GATES = frozenset({"sigmoid", "silu", "gelu", "tanh", "softplus"})
#: The role of positions, which several readers may have in common.
INDICES = "indices"
#: Maximum number of readers that a value's name may depend on. The longest role that
#: authors write, ``x * (1 + scale.reshape(...)) + shift``, has five; without a limit,
#: each value of a chain of sums would follow the chain to its end.
MAX_READERS = 8


@dataclass
class Uses:
    """The readers and the producer of each value of a function."""

    readers: dict[Symbol, list[Statement]] = field(default_factory=dict)
    makers: dict[Symbol, Statement] = field(default_factory=dict)

    def add(self, block: Block) -> None:
        """Add the statements of a block and of nested blocks."""
        for statement in block.statements:
            self.makers.update(dict.fromkeys(statement.targets, statement))
            for symbol in symbols_in(operands(statement)):
                self.readers.setdefault(symbol, []).append(statement)
            for inner in blocks_of(statement):
                self.add(inner)

    def word(self, symbol: Symbol) -> str:
        """Return the role of a value for its only reader, else "".

        Also if all readers take it for indices.
        """
        word = self.role(symbol)
        return "gate" if word == "factor" else word

    def role(self, symbol: Symbol, limit: int = MAX_READERS) -> str:
        """Return :meth:`word`, with "factor" for a multiplied value."""
        readers = self.readers.get(symbol, []) if limit else []
        words = {self.role_for(reader, symbol, limit) for reader in readers}
        only = words.pop() if len(words) == 1 else ""
        return only if len(readers) == 1 or only == INDICES else ""

    def role_for(self, reader: Statement, symbol: Symbol, limit: int) -> str:
        """Return the role of a value for one of its readers."""
        if not isinstance(reader, Apply):
            return ""
        name = reader.primitive.name
        if name in GATES:
            return "gate"
        if name in MOVES and len(reader.targets) == 1:
            return self.role(reader.targets[0], limit - 1)
        if name in ("add", "mul") and len(reader.args) == 2:
            return self.term(symbol, reader, limit - 1)
        return parameter_name(reader, symbol)

    def term(self, symbol: Symbol, reader: Apply, limit: int) -> str:
        """Return the role of a factor or a summand: ``x * (1 + scale) + shift``."""
        others = [s for s in symbols_in(reader.args) if s is not symbol]
        if reader.primitive.name == "mul":
            return "factor" if others else ""
        if not others or others[0].known is not None:
            word = self.role(reader.targets[0], limit)
            return "scale" if word in ("factor", "scale") else ""
        maker = self.makers.get(others[0])
        product = isinstance(maker, Apply) and maker.primitive.name == "mul"
        return "shift" if product and self.is_summand(reader) else ""

    def is_summand(self, reader: Apply) -> bool:
        """Return whether a sum has a product with a factor 1 + scale."""
        for symbol in symbols_in(reader.args):
            maker = self.makers.get(symbol)
            if isinstance(maker, Apply) and maker.primitive.name == "mul":
                for factor in symbols_in(maker.args):
                    inner = self.makers.get(factor)
                    if isinstance(inner, Apply) and inner.primitive.name == "add":
                        return len([*tensors(inner)]) < 2
        return False


def tensors(call: Apply) -> Iterator[Symbol]:
    """Yield the operands of a call without known contents."""
    yield from (s for s in symbols_in(call.args) if s.known is None)


def parameter_name(call: Apply, symbol: Symbol) -> str:
    """Return the primitive's parameter for ``symbol``, "" if it is generic."""
    names = [parameter.name for parameter in parameters(call.primitive)]
    for position, operand in enumerate(call.args[: len(names)]):
        if isinstance(operand, Tensor) and operand.data is symbol:
            return specific_name(names[position])
    return next((specific_name(n) for n, v in static_tensors(call) if v is symbol), "")


def static_tensors(call: Apply) -> Iterator[tuple[str, Symbol]]:
    """Yield the tensors among a call's keyword arguments."""
    for name, operand in call.static.items():
        if isinstance(operand, Tensor):
            yield name, operand.data


def specific_name(parameter: str) -> str:
    """Return ``parameter`` unless it is a generic name, else ""."""
    return parameter if len(parameter) > 1 and parameter not in VAGUE_PARAMETERS else ""


def uses(block: Block) -> Uses:
    """Return the readers and producers of the values of ``block``."""
    result = Uses()
    result.add(block)
    return result
