"""Source of traced calls, with operators and methods where the API has them."""

from typing import Any

from burn import Tensor, dtypes
from burn.dtypes import is_float
from burn.methods import SPELLINGS
from burn.ops.support import Array
from burn_import.codegen.printing.operands import OperandRenderer
from burn_import.codegen.trace.primitive_parameters import (
    default,
    last_tensor,
    parameters,
    same_default,
)
from burn_import.tracing.expression import (
    ATOM,
    COMPARISON,
    EQUALITY,
    Expression,
    atom,
    merge,
    negate,
    opposite,
)
from burn_import.tracing.scalar_operands import (
    fill_number,
    is_number,
    is_same,
    number_in,
    rank_of,
    stands_as_number,
    tensor_position,
)
from burn_import.tracing.trace import FIRST, Apply, ModuleCall
from burn_ir.op import Keyword

#: Primitives in which a Python number gets the dtype of the tensor operand.
WEAK = frozenset(
    {"add", "sub", "mul", "div", "floor_div", "trunc_div", "remainder", "fmod", "pow"}
    | {"maximum", "minimum", "where", "clip", "equal", "not_equal"}
    | {"less", "less_equal", "greater", "greater_equal"}
)
#: Annotations of tensor parameters; a list of numbers would lose their dtype.
TENSORS = (Array, Array | None, list[Array])
#: Operands that may be a Python list of integers, with the dtypes they may have.
LISTS = {("concat", 0): (dtypes.int64,), ("take", 1): (dtypes.int64, dtypes.int32)}
#: Operands that may be a Python number, in the dtype of the first operand.
FILLS = frozenset({("pad", 2)})
#: Primitives that return their operands, so parameters must become tensors.
KEEPS = frozenset({"sequence_insert", "sequence_joined", "element"})
#: Methods that take a shape or an order of axes as separate arguments.
SPREAD = frozenset({"reshape", "expand", "permute"})


class Renderer(OperandRenderer):
    """A renderer of calls, with the current names of values."""

    def statement(self, statement: Apply | ModuleCall) -> Expression:
        """Return the right-hand side of a statement."""
        if isinstance(statement, ModuleCall):
            args = self.module_arguments(statement)
            text = ", ".join(a.text for a in args)
            call = f"{self.module(statement.path)}({text})"
            if statement.is_first_result:
                call += FIRST
            return Expression(call, ATOM, merge(args))
        return self.apply(statement)

    def module_arguments(self, call: ModuleCall) -> list[Expression]:
        """Return the arguments of a module call."""
        return [self.argument(arg) for arg in call.args]

    def argument(self, arg: Any) -> Expression:
        """Return an argument of a module call: a tensor, or a tuple of them."""
        if isinstance(arg, Keyword):
            value = self.argument(arg[1])
            return Expression(f"{arg[0]}={value.text}", value.precedence, value.symbols)
        if arg is None or isinstance(arg, bool):  # None: a merged class lacks it
            return atom(str(arg))
        if not isinstance(arg, tuple):
            return self.value(arg)
        items = [self.value(item) for item in arg]
        text = ", ".join(item.text for item in items)
        return Expression(f"({text})", ATOM, merge(items))

    def apply(self, call: Apply) -> Expression:
        """Return a call of a primitive: an operator, a method or ``ops.name(...)``."""
        name = call.primitive.name
        spelling = SPELLINGS.get(name)
        special = self.special(call, name)
        if special is not None:
            return special
        if spelling is not None and isinstance(
            call.args[0], Tensor | int | float | list
        ):
            if spelling.kind == "infix" and not call.static:
                left, right = self.arguments(call)
                return left.infix(spelling.text, right, spelling.precedence)
            if spelling.kind == "prefix":
                (operand,) = self.arguments(call)
                return operand.prefixed(spelling.text, spelling.precedence)
            if spelling.kind == "index":
                return self.index(call)
            if spelling.kind == "argument":
                return self.items(call.args[0])
            receiver = self.data(call.args[0])
            if spelling.kind == "method":
                return self.method(call, receiver)
        return self.function(call)

    def special(self, call: Apply, name: str) -> Expression | None:
        """Return plain Python for a call, or None if it is an ordinary call."""
        deciding = call.targets[0] in self.conditions
        first: Any = call.args[0] if call.args else None
        if name == "absent":
            return atom("None")
        if deciding and name == "logical_not" and first.data in self.python:
            self.python.add(call.targets[0])
            return negate(self.data(first), ordered=True)
        if name == "logical_not" and isinstance(first, Tensor):
            pending = self.pending.get(first.data)
            unequal = None if pending is None else opposite(pending, EQUALITY)
            if unequal is not None:
                return unequal
        if deciding and name == "has_element":
            self.python.add(call.targets[0])
            value = self.data(first)
            return Expression(
                f"{value.inside(COMPARISON + 1)} is not None", COMPARISON, value.symbols
            )
        if name == "cast" and is_float(call.static["dtype"]) and self.is_made(first):
            return self.array(first.data, call.static["dtype"])
        return None

    def is_made(self, arg: Any) -> bool:
        """Return whether ``arg`` is a tensor of dimensions built at its use."""
        if not isinstance(arg, Tensor) or arg.data.constant:
            return False
        contents = arg.data.known
        unnamed = arg.data not in self.names and arg.data not in self.pending
        return unnamed and contents is not None and contents.dtype == object

    def index(self, call: Apply) -> Expression:
        """Return ``x[key]``."""
        operand = self.data(call.args[0])
        key = call.args[1]
        parts = [self.key(k) for k in (key if isinstance(key, tuple) else (key,))]
        text = ", ".join(part.text for part in parts)
        return Expression(
            f"{operand.inside(ATOM)}[{text}]", ATOM, merge([operand, *parts])
        )

    def key(self, key: Any) -> Expression:
        """Return one index: an integer, a slice, None, ``...`` or a tensor."""
        if isinstance(key, slice):
            bounds = [
                None if b is None else self.host(b) for b in (key.start, key.stop)
            ]
            text = ":".join("" if b is None else b.text for b in bounds)
            if key.step is not None:
                text += f":{self.host(key.step).text}"
            return Expression(text, 0, merge(b for b in bounds if b is not None))
        if key is Ellipsis:
            return atom("...")
        return self.host(key)

    def method(self, call: Apply, receiver: Expression) -> Expression:
        """Return ``x.name(...)``."""
        args = self.arguments(call, skip=1)
        spread = call.primitive.name in SPREAD and len(call.args) > 1
        if spread and _is_sequence(call.args[1]):
            inner = args[0].text[1:-1].rstrip(",")
            args[0] = Expression(inner, 0, args[0].symbols)
        return self.finish(
            f"{receiver.inside(ATOM)}.{call.primitive.name}",
            call,
            args,
            [receiver],
            True,
        )

    def function(self, call: Apply) -> Expression:
        """Return ``ops.name(...)``."""
        self.modules.add("ops")
        return self.finish(f"ops.{call.primitive.name}", call, self.arguments(call))

    def finish(
        self,
        head: str,
        call: Apply,
        args: list[Expression],
        before: list[Expression] | None = None,
        positional: bool = False,
    ) -> Expression:
        """Return the call with its arguments, without those equal to defaults."""
        declared = parameters(call.primitive)
        first = len(before or [])
        texts = []
        keyword = False
        last = last_tensor(call)
        for position, arg in enumerate(args, first):
            if position > last and arg.text == default(declared, position):
                keyword = True
                continue
            parameter = declared[position] if position < len(declared) else None
            plain = isinstance(call.args[position], int | None) and position > last
            plain = plain and not (parameter and parameter.annotation is Array)
            keyword = keyword or (plain and not positional)
            name = parameter.name if parameter else ""
            texts.append(f"{name}={arg.text}" if keyword else arg.text)
        for name, value in call.static.items():
            if not same_default(declared, name, value):
                text = self.static(value).text
                bare = positional and name == "dtype"  # x.cast(burn.float32)
                texts.append(text if bare else f"{name}={text}")
        symbols = merge([*(before or []), *args])
        return Expression(f"{head}({', '.join(texts)})", ATOM, symbols)

    def arguments(self, call: Apply, skip: int = 0) -> list[Expression]:
        """Return the positional arguments, each in its parameter's form."""
        declared = parameters(call.primitive)
        name = call.primitive.name
        weak = name in WEAK
        if weak and all(is_number(arg) for arg in call.args):
            if call.targets[0] in self.conditions:
                self.python.add(call.targets[0])
                return [self.number(arg) for arg in call.args]
            return self.numbers(call)
        result = []
        for position, arg in enumerate(call.args[skip:], skip):
            annotation = (
                declared[position].annotation if position < len(declared) else None
            )
            if weak:
                result.append(self.weak(arg, call))
            elif (name, position) in FILLS and is_number(arg):
                result.append(self.host(fill_number(arg)))
            elif name == "arange" and _is_whole(arg):
                result.append(self.number(arg))
            elif name in KEEPS and isinstance(arg, Tensor):
                result.append(self.value(arg))
            elif annotation in TENSORS:
                result.append(self.data(arg, LISTS.get((name, position), ())))
            else:
                result.append(self.host(arg))
        return result

    def numbers(self, call: Apply) -> list[Expression]:
        """Return the operands of a call of only numbers; one becomes a tensor.

        So does every other one of higher rank.
        """
        position = tensor_position(call)
        tensor = call.args[position]

        def is_tensor(arg: Any) -> bool:
            return is_same(arg, tensor) or rank_of(arg) > rank_of(tensor)

        return [self.data(a) if is_tensor(a) else self.number(a) for a in call.args]

    def weak(self, arg: Any, call: Apply) -> Expression:
        """Return an operand of an elementwise primitive; scalars become numbers."""
        unnamed = isinstance(arg, Tensor) and arg.data not in self.names
        if unnamed and stands_as_number(arg, call):
            return self.host(number_in(arg.data))
        return self.data(arg)


def _is_whole(arg: Any) -> bool:
    """Return whether an operand is a known int64: a number says the same."""
    return isinstance(arg, Tensor) and is_number(arg) and arg.data.dtype == dtypes.int64


def _is_sequence(value: Any) -> bool:
    if isinstance(value, Tensor):
        contents = value.data.known
        return contents is not None and contents.ndim == 1
    return isinstance(value, list | tuple)
