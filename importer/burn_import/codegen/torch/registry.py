"""The registry of forms: the PyTorch source for each primitive."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from burn import Tensor
from burn.dtypes import DType, bool_, float32, int64, name_of
from burn.primitive import Primitive
from burn_import.tracing.constructor_numbers import (
    ParameterFloat,
    ParameterInt,
    ParameterNumber,
)
from burn_import.tracing.expression import Expression
from burn_import.tracing.identifiers import literal
from burn_import.tracing.trace import Apply
from burn_ir.errors import Problem, UnsupportedModel


def has_parameter_numbers(value: Any) -> bool:
    """Return whether a value is or contains a constructor argument."""
    if isinstance(value, list | tuple):
        return any(map(has_parameter_numbers, value))
    if isinstance(value, slice):
        return has_parameter_numbers((value.start, value.stop, value.step))
    return isinstance(value, ParameterNumber)


def with_parameter_values(value: Any, number: int) -> Any:
    """Return a value with ``number`` in place of constructor arguments.

    The numbers are emitted as before.
    """
    if isinstance(value, list | tuple):
        return type(value)(with_parameter_values(item, number) for item in value)
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        return slice(*(with_parameter_values(part, number) for part in parts))
    if isinstance(value, ParameterInt):
        return ParameterInt(number, value.text)
    if isinstance(value, ParameterFloat):
        return ParameterFloat(number, value.text)
    return value


#: PyTorch dtypes that a generated module may use.
NAMES = frozenset(
    {"bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"}
    | {"float16", "bfloat16", "float32", "float64", "complex64", "complex128"}
    | {"float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"}
)
#: Default dtypes of ``torch.tensor`` for Python numbers.
NATURAL = (bool_, int64, float32)


def dtype_name(dtype: DType) -> str:
    """Return the name of a dtype in PyTorch: ``float32``, ``bool``.

    Raises:
        UnsupportedModel: PyTorch has no such dtype.
    """
    name = "bool" if dtype == bool_ else name_of(dtype)
    if name not in NAMES:
        raise UnsupportedModel(
            f"expected a dtype that PyTorch has, got {name}",
            "import it without --target torch",
        )
    return name


def torch_dtype(dtype: DType) -> str:
    """Return the source of a dtype: ``torch.float32``."""
    return f"torch.{dtype_name(dtype)}"


#: Methods and properties of tensors that forms emit.
TENSOR_METHODS = frozenset(
    {"all", "amax", "amin", "any", "append", "argmax", "argmin", "chunk", "clamp"}
    | {"det", "inv", "solve"}
    | {"cumprod", "cumsum", "detach", "device", "expand", "flatten", "flip", "int"}
    | {"item", "logsumexp", "max", "mean", "min", "numel", "permute", "prod"}
    | {"reshape", "shape", "split", "squeeze", "sum", "tile", "to", "tolist"}
    | {"transpose", "unflatten", "unfold", "unsqueeze", "var", "vector_norm", "view"}
)


#: A form's arguments are the renderer, a ``TorchRenderer``, and the call.
Form = Callable[[Any, Apply], Expression]

#: The form of each primitive, by name.
FORMS: dict[str, Form] = {}


def form(*primitives: Any) -> Callable[[Form], Form]:
    """Register the decorated function as the form of ``primitives``.

    It returns the expression of a call of one of them.
    """

    def declare(function: Form) -> Form:
        for primitive in primitives:
            assert isinstance(primitive, Primitive), primitive
            if primitive.name in FORMS:
                raise ValueError(f"primitive {primitive.name!r} has two forms")
            FORMS[primitive.name] = function
        return function

    return declare


def unless(value: Any, default: Any) -> str | None:
    """Return the source of an option, or None if it equals PyTorch's default.

    Constructor arguments are always emitted, since they differ between instances.
    """
    if isinstance(value, Tensor):
        raise TypeError("expected an option, got a tensor")
    is_omitted = value == default and not has_parameter_numbers(value)
    return None if is_omitted else literal(value)


def flag(value: Any) -> str | None:
    """Return the source of an option that is off by default, or None if it is off."""
    return unless(value, False)


def located_at(call: Apply, problem: Problem) -> Problem:
    """Return ``problem`` with the node of a call, if it has no location."""
    if problem.node:
        return problem
    node, operator, opset = call.origin
    return replace(problem, node=node, operator=operator, opset=opset)


def refusal(call: Apply, message: str) -> UnsupportedModel:
    """Return the error that a call cannot be emitted for PyTorch."""
    node, operator, opset = call.origin
    hint = "import it without --target torch"
    return UnsupportedModel([Problem(message, node, operator, opset, hint)])
