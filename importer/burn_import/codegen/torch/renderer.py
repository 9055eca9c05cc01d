"""Expressions of traced statements in PyTorch."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from burn import Tensor
from burn.dtypes import DType, int64, uint16, uint32, uint64
from burn_import.codegen.printing.expressions import WEAK, Renderer
from burn_import.codegen.torch.registry import (
    FORMS,
    NATURAL,
    has_parameter_numbers,
    located_at,
    refusal,
    torch_dtype,
    with_parameter_values,
)
from burn_import.codegen.trace.primitive_parameters import parameters
from burn_import.tracing.expression import ATOM, Expression, atom, merge
from burn_import.tracing.identifiers import literal
from burn_import.tracing.scalar_operands import number_in
from burn_import.tracing.trace import Apply, ModuleCall, Symbol
from burn_ir.containers import python_type
from burn_ir.dim import Dim
from burn_ir.errors import Problem, UnsupportedModel
from burn_ir.op import Keyword

#: Kinds of parameters that are no single value.
_POSITIONAL = "VAR_POSITIONAL"
_KEYWORD = "VAR_KEYWORD"
#: Constructor arguments for testing whether a form depends on them.
VARIED = (0, 1, 3)


class TorchRenderer(Renderer):
    """A renderer of operands and calls that applies the PyTorch forms.

    ``problems`` collects unsupported calls; each subclass has its own dict.
    """

    problems: ClassVar[dict[Problem, None]] = {}

    @staticmethod
    def stored_value(attribute: str) -> str:
        return attribute

    @staticmethod
    def replacement(attribute: str, value: str) -> str:
        return f"{attribute} = {value}.detach()"

    @staticmethod
    def one_number(shape: tuple[int, ...], value: int) -> str:
        return f"torch.full({shape}, {value})"

    def gradient(self, function: str, inputs: str, others: str) -> str:
        self.modules |= {"torch", "_gradient"}
        return f"_gradient({function}, [{inputs}], [{others}])"

    def apply(self, call: Apply) -> Expression:
        """Return the expression of a call; add unsupported calls to ``problems``."""
        name = call.primitive.name
        special = self.special(call, name)
        if special is not None:
            return special
        try:
            if name not in FORMS:
                raise refusal(call, f"operation {name!r} cannot be written in PyTorch")
            self.check_dtypes(call)
            return self.checked(call, FORMS[name](self, call))
        except UnsupportedModel as error:
            located = (located_at(call, problem) for problem in error.problems)
            self.problems.update(dict.fromkeys(located))
            return atom("None")

    def check_dtypes(self, call: Apply) -> None:
        """Raise ``UnsupportedModel`` for a dtype that PyTorch cannot compute in."""
        for arg in call.args if call.primitive.name in WEAK else ():
            if self.dtype(arg) in (uint16, uint32, uint64):
                message = f"PyTorch does not compute in {self.dtype(arg)}"
                raise refusal(call, f"operation {call.primitive.name!r}: {message}")

    def checked(self, call: Apply, result: Expression) -> Expression:
        """Return ``result`` if the form does not depend on constructor arguments."""
        name = call.primitive.name
        for number in (
            VARIED if has_parameter_numbers([*call.args, *call.static.values()]) else ()
        ):
            if self.varied(call, number) != result.text:
                message = f"operation {name!r}: expected options that are equal in all "
                raise refusal(call, f"{message}modules of a class")
        return result

    def varied(self, call: Apply, number: int) -> str:
        """Return the text of a call with other constructor arguments.

        A form must not choose its source by numbers that differ between
        instances.
        """
        args = tuple(with_parameter_values(arg, number) for arg in call.args)
        static = {
            name: with_parameter_values(v, number) for name, v in call.static.items()
        }
        form = FORMS[call.primitive.name]
        try:
            return form(self, replace(call, args=args, static=static)).text
        except (UnsupportedModel, ValueError):
            return ""

    # Operands

    def module_arguments(self, call: ModuleCall) -> list[Expression]:
        """Return the arguments of a module call.

        For PyTorch's attention ``is_causal`` is a hint about a mask that it needs.
        """
        arguments = super().module_arguments(call)
        for at, arg in enumerate(call.args):
            if isinstance(arg, Keyword) and arg[0] == "is_causal":
                self.modules |= {"_causal_mask"}
                module = self.module(call.path)
                query, key = (argument.text for argument in arguments[:2])
                text = f"attn_mask=_causal_mask({module}, {query}, {key})"
                arguments[at] = atom(text)
        return arguments

    def named_arguments(self, call: Apply) -> dict[str, Any]:
        """Return the value of each parameter of a call, including defaults."""
        declared = parameters(call.primitive)
        values: dict[str, Any] = {}
        for position, parameter in enumerate(declared):
            if parameter.kind.name == _POSITIONAL:
                values[parameter.name] = call.args[position:]
            elif position < len(call.args):
                values[parameter.name] = call.args[position]
            elif parameter.kind.name != _KEYWORD:
                values[parameter.name] = parameter.default
        return values | call.static

    def data(self, arg: Any, lists: Collection[DType] = ()) -> Expression:
        """Return an operand as a tensor, or as a Python number from a ``lower``."""
        return super().data(arg)

    def tensor(self, arg: Any) -> Expression:
        """Return an operand that PyTorch does not accept as a Python number."""
        if isinstance(arg, Tensor):
            return self.data(arg)
        number = self.host(arg)
        self.modules.add("torch")
        return Expression(f"torch.tensor({number.text}{self.device()})")

    def number_or_tensor(self, arg: Any) -> Expression:
        """Return an operand as a Python number if it is a known scalar."""
        if isinstance(arg, Tensor) and self.is_named(arg):
            return self.data(arg)
        number = number_in(arg.data) if isinstance(arg, Tensor) else arg
        return self.data(arg) if number is None else self.host(number)

    def is_named(self, arg: Tensor) -> bool:
        """Return whether ``arg`` is available as a name, attribute or expression."""
        symbol: Symbol = arg.data
        stored = bool(symbol.constant) and symbol.known is None
        return symbol in self.names or symbol in self.pending or stored

    def integers(self, arg: Any) -> Expression:
        """Return an operand as a list of Python integers: a shape, axes, sizes."""
        if isinstance(arg, list | tuple):
            items = [self.integer(item) for item in arg]
            text = ", ".join(item.text for item in items)
            comma = "," if len(items) == 1 else ""
            return Expression(f"({text}{comma})", ATOM, merge(items))
        expression = self.host(arg)
        if not isinstance(arg, Tensor) or expression.text.startswith("["):
            return expression
        flat = "" if self.rank(arg) == 1 else ".reshape(-1)"
        text = f"{expression.inside(ATOM)}{flat}.tolist()"
        return Expression(text, ATOM, expression.symbols)

    def integer(self, arg: Any) -> Expression:
        """Return an operand as a Python integer."""
        if not isinstance(arg, Tensor):
            return self.host(arg)
        if not self.is_named(arg) and number_in(arg.data) is not None:
            return self.host(number_in(arg.data))
        expression = self.data(arg)
        return Expression(f"int({expression.text})", ATOM, expression.symbols)

    def known(self, arg: Any) -> Any:
        """Return the numbers of a host operand, or None if they are unknown."""
        if isinstance(arg, Tensor):
            if self.is_named(arg) or arg.data.known is None:
                return None
            return arg.data.known.tolist()
        return arg

    def shape(self, arg: Any) -> tuple[Dim, ...] | None:
        """Return the dimensions of a tensor, or None if they are unknown."""
        if not isinstance(arg, Tensor) or arg.data.type is None:
            return None
        shape: tuple[Dim, ...] | None = arg.data.type.shape
        return shape

    def rank(self, arg: Any) -> int | None:
        """Return the rank of a tensor, or None if it is unknown."""
        shape = self.shape(arg)
        return None if shape is None else len(shape)

    def dtype(self, arg: Any) -> DType | None:
        """Return the dtype of a tensor, or None if it is unknown."""
        kind = arg.data.type if isinstance(arg, Tensor) else None
        return getattr(kind, "dtype", None)

    # Expressions

    def call(
        self,
        head: str,
        args: Sequence[Expression],
        keywords: Mapping[str, Expression | str | None] | None = None,
    ) -> Expression:
        """Return ``head(args, name=value)`` without keywords that are None."""
        root = head.partition(".")[0]
        self.modules.add(root if root in ("torch", "F", "math") else head)
        texts, symbols = [arg.text for arg in args], [*merge(args)]
        for name, value in (keywords or {}).items():
            if isinstance(value, Expression):
                symbols += value.symbols
                value = value.text
            if value is not None:
                texts.append(f"{name}={value}")
        return Expression(f"{head}({', '.join(texts)})", ATOM, tuple(symbols))

    def method_call(
        self,
        receiver: Expression,
        name: str,
        args: Sequence[Expression] = (),
        keywords: Mapping[str, Expression | str | None] | None = None,
    ) -> Expression:
        """Return ``receiver.name(args)``."""
        inner = self.call("", args, keywords)
        self.modules.discard("")
        text = f"{receiver.inside(ATOM)}.{name}{inner.text}"
        return Expression(text, ATOM, receiver.symbols + inner.symbols)

    def device(self) -> str:
        """Return the keyword that creates tensors on the device of the inputs."""
        for symbol, name in self.names.items():
            if python_type(symbol.type) == "Tensor":
                return f", device={name}.device"
            break
        self.modules.add("_device")
        return ", device=_device(self)"

    def filled(
        self, array: np.ndarray[Any, Any], values: Expression, dtype: DType
    ) -> Expression:
        """Return a tensor of ``values``; empty ones need an explicit shape."""
        kind = f", dtype={torch_dtype(dtype)}"
        self.modules.add("torch")
        if array.ndim > 1 and not array.size:
            shape = literal(array.shape)
            return Expression(f"torch.zeros({shape}{kind}{self.device()})")
        whole = array.dtype == object  # dimensions, which are Python integers
        natural = dtype in NATURAL and whole <= (dtype == int64)
        kind = "" if natural and array.size else kind
        text = f"torch.tensor({values.text}{kind}{self.device()})"
        return Expression(text, ATOM, values.symbols)

    def strings(self, array: np.ndarray[Any, Any]) -> Expression:
        raise UnsupportedModel(
            "expected tensors of numbers, got strings: PyTorch has none",
            "the target burn has them",
        )

    def static(self, value: Any) -> Expression:
        """Return a static argument: a number, a string, a dtype."""
        if isinstance(value, np.dtype):
            self.modules.add("torch")
            return atom(torch_dtype(value))
        return super().static(value)

    def limit(self, dtype: DType, end: str) -> str:
        self.modules.add("torch")
        return f"torch.finfo({torch_dtype(dtype)}).{end}"
