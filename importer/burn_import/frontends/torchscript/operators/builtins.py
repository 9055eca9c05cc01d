"""Functions on numbers, tensors and loops that are not ATen rules."""

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from burn.dtypes import DType
from burn_import.frontends.torch_export.aten import RULES
from burn_import.frontends.torch_export.builder import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT64,
    Value,
    kind_of,
    promoted_dtype,
)
from burn_import.frontends.torch_export.complex_as_real import is_complex
from burn_import.frontends.torchscript.node_writer import NodeWriter
from burn_import.frontends.torchscript.operators.dtypes import (
    scalar_number,
    scalar_type,
)
from burn_import.frontends.torchscript.values import DEVICE, UNKNOWN, PyValue, TensorRef
from burn_ir import UnsupportedModel
from burn_ir.graph_builder import Origin


@dataclass(frozen=True)
class AtenCall:
    """A call of ``torch.name``: its ATen target and its arguments by name."""

    name: str
    target: str
    args: Mapping[str, Any]
    origin: Origin


class OperatorCalls(ABC):
    """Operators as nodes; ``writer`` receives the nodes."""

    writer: NodeWriter

    @abstractmethod
    def call(
        self,
        name: str,
        args: list[PyValue],
        kwargs: dict[str, PyValue],
        origin: Origin,
        count: int | None = None,
    ) -> PyValue:
        """Return the result of ``torch.name(*args, **kwargs)``.

        ``count`` is the number of names that the result is unpacked to.

        Raises:
            UnsupportedModel: the operator is not supported.
            InvalidModel: the arguments do not fit.
        """

    @abstractmethod
    def operator(
        self,
        name: str,
        args: list[PyValue],
        kwargs: dict[str, PyValue],
        origin: Origin,
        count: int | None = None,
    ) -> PyValue:
        """Return the result of an ATen operator, a tensor or a list of them."""

    @abstractmethod
    def leaves(self, obj: PyValue) -> Iterator[PyValue]:
        """Yield the leaves of nested lists, tuples and dicts."""

    @abstractmethod
    def number(self, target: str, args: Sequence[PyValue], origin: Origin) -> PyValue:
        """Return the result of a function of numbers, as a number if it is known."""

    @abstractmethod
    def size(self, origin: Origin, x: TensorRef, dim: int | None = None) -> PyValue:
        """Return an extent of a tensor, or all of them."""

    @abstractmethod
    def as_number(self, x: PyValue, origin: Origin) -> PyValue:
        """Return a tensor of one element as a number; numbers unchanged."""

    @abstractmethod
    def tensor(self, x: PyValue, origin: Origin, dtype: Any = None) -> TensorRef:
        """Return a number, or a list of numbers, as a tensor."""


def has_computed_numbers(x: PyValue) -> bool:
    """Return whether a number, or one in nested lists, is known only at run time."""
    return any(isinstance(number, Value) for number in _numbers(x))


def computed_tensor(
    operators: OperatorCalls, x: Any, origin: Origin, dtype: DType | None
) -> TensorRef:
    """Return numbers as a tensor; ``dtype`` is by default that of PyTorch."""
    kind = dtype or _default_dtype(x)
    if isinstance(x, list | tuple):
        parts = [computed_tensor(operators, item, origin, kind) for item in x]
        stacked = operators.operator("stack", [parts], {}, origin)
        assert isinstance(stacked, TensorRef)
        return stacked
    if not isinstance(x, Value):
        return operators.tensor(x, origin, kind)
    result, named = Value("", kind, ()), {"self": x, "dtype": kind}
    (value,) = operators.writer.apply(RULES["aten.to.dtype"], origin, [result], named)
    assert value is not None
    return TensorRef(Value(value.name, kind, ()))


def _default_dtype(x: PyValue) -> DType:
    kinds = [
        kind_of(number.dtype) if isinstance(number, Value) else _KINDS[type(number)]
        for number in _numbers(x)
    ]
    return (BOOL, INT64, FLOAT32)[max(kinds)]


_KINDS = {bool: 0, int: 1, float: 2}


def _numbers(x: Any) -> Iterator[Any]:
    if isinstance(x, list | tuple):
        for item in x:
            yield from _numbers(item)
    else:
        yield x


def lists_differ(
    operators: OperatorCalls, origin: Origin, a: list[PyValue], b: list[PyValue]
) -> bool:
    """Return whether two lists of numbers differ.

    Raises:
        UnsupportedModel: that is known only at run time.
    """
    if len(a) != len(b):
        return True
    pairs = zip(a, b, strict=True)
    tests = [operators.call("ne", [x, y], {}, origin) for x, y in pairs]
    if any(x is True for x in tests):
        return True
    if any(x is not False for x in tests):
        raise UnsupportedModel("lists are compared at run time")
    return False


def _dim(operators: OperatorCalls, origin: Origin, x: TensorRef) -> PyValue:
    if x.value.dims is None:
        raise UnsupportedModel("the rank of a tensor is unknown")
    return len(x.value.dims)


def _numel(operators: OperatorCalls, origin: Origin, x: TensorRef) -> PyValue:
    total: PyValue = 1
    for extent in operators.size(origin, x):
        total = operators.call("mul", [total, extent], {}, origin)
    return total


def _length(operators: OperatorCalls, origin: Origin, x: TensorRef) -> PyValue:
    return operators.size(origin, x, 0)


def _item(operators: OperatorCalls, origin: Origin, x: TensorRef) -> PyValue:
    return operators.as_number(x, origin)


def _tensor(
    operators: OperatorCalls, origin: Origin, x: PyValue, dtype: Any = None, **rest: Any
) -> PyValue:
    return operators.tensor(x, origin, None if dtype is None else scalar_type(dtype))


def _is_floating(operators: OperatorCalls, origin: Origin, x: TensorRef) -> PyValue:
    return kind_of(x.value.dtype) == kind_of(FLOAT64)


def _not(operators: OperatorCalls, origin: Origin, x: PyValue) -> PyValue:
    if isinstance(x, TensorRef):
        return operators.operator("logical_not", [x], {}, origin)
    return operators.number("_operator.eq", [x, False], origin)


def _range_length(
    operators: OperatorCalls, origin: Origin, low: PyValue, high: PyValue, step: PyValue
) -> PyValue:
    """Return the trip count of a loop from ``low`` to ``high``, one of which varies."""
    if step == 0:
        raise UnsupportedModel("the step of a loop is 0")
    if not isinstance(step, int):  # of either sign: -((low - high) // step)
        steps = operators.call("sub", [low, high], {}, origin)
        steps = operators.call("floordiv", [steps, step], {}, origin)
        return operators.call("sub", [0, steps], {}, origin)
    ends, step = ([high, low], step) if step > 0 else ([low, high], -step)
    span = operators.call("sub", ends, {}, origin)
    if step > 1:
        span = operators.call("add", [span, step - 1], {}, origin)
        span = operators.call("floordiv", [span, step], {}, origin)
    return span  # a negative trip count means 0


def _derive_index(
    operators: OperatorCalls,
    origin: Origin,
    index: PyValue,
    start: PyValue,
    step: PyValue,
) -> PyValue:
    """Return the loop index in iteration ``index``."""
    if step != 1:
        index = operators.call("mul", [index, step], {}, origin)
    return operators.call("add", [start, index], {}, origin)


def scalar_of(x: TensorRef) -> int:
    """Return the ``ScalarType`` number of a tensor's dtype."""
    return scalar_number(x.value.dtype)


def is_instance(obj: PyValue, kind: ast.expr) -> bool:
    """Return whether an object has a type of the code: ``Tensor``, ``List[Tensor]``.

    Raises:
        UnsupportedModel: the type is unknown.
    """
    outer = kind.value if isinstance(kind, ast.Subscript) else kind
    python_type = _TYPES.get(outer.id) if isinstance(outer, ast.Name) else None
    if python_type is None or obj is UNKNOWN:
        raise UnsupportedModel(f"isinstance with {ast.unparse(kind)} is not supported")
    if isinstance(obj, Value):
        return (
            python_type in (int, float, bool)
            and python_type is _NUMBERS[kind_of(obj.dtype)]
        )
    return type(obj) is python_type


_TYPES: Mapping[str, type] = {
    "Tensor": TensorRef,
    "List": list,
    "Tuple": tuple,
    "Dict": dict,
    "int": int,
    "float": float,
    "bool": bool,
    "str": str,
}
#: Python types of computed numbers, by the kind of their dtype.
_NUMBERS = (bool, int, float, complex)


def _promoted_type(operators: OperatorCalls, origin: Origin, *operands: PyValue) -> int:
    """Return the ``ScalarType`` number of the promoted dtype of operands."""
    values = [x.value if isinstance(x, TensorRef) else x for x in operands]
    return scalar_number(promoted_dtype(values))


def _extreme(name: str) -> Callable[..., PyValue]:
    """Return ``max`` or ``min`` of tensors, or of numbers that are computed."""

    def apply(
        operators: OperatorCalls, origin: Origin, *args: PyValue, **named: PyValue
    ) -> PyValue:
        parts = operators.leaves([*args, *named.values()])
        if any(isinstance(part, TensorRef) for part in parts):
            return operators.operator(name, list(args), named, origin)
        numbers = args[0] if isinstance(args[0], list) else args
        target = f"torch.sym_{name}"
        return reduce(lambda a, b: operators.number(target, [a, b], origin), numbers)

    return apply


def _scalar(name: str, dtype: DType | None = None) -> Callable[..., PyValue]:
    """Return a function whose result of a computed number is a number.

    Its dtype is float64 if ``dtype`` is None, else ``dtype``; that of the operand for
    ``neg`` and ``abs``.
    """

    def apply(
        operators: OperatorCalls,
        origin: Origin,
        x: PyValue,
        *args: PyValue,
        **named: PyValue,
    ) -> PyValue:
        if not isinstance(x, Value):
            return operators.operator(name, [x, *args], named, origin)
        if name not in ("neg", "abs"):
            x = computed_tensor(operators, x, origin, FLOAT64)
        result = operators.operator(name, [x, *args], {}, origin)
        if dtype is not None:
            result = operators.operator(
                "to", [result, scalar_number(dtype)], {}, origin
            )
        return operators.as_number(result, origin)

    return apply


#: By name in the code.
SPECIAL: Mapping[str, Callable[..., PyValue]] = {
    "size": lambda operators, origin, *args, **named: operators.size(
        origin, *args, **named
    ),
    "dim": _dim,
    "numel": _numel,
    "len": _length,
    "item": _item,
    "tensor": _tensor,
    "is_floating_point": _is_floating,
    "is_complex": lambda operators, origin, x: is_complex(x.value),
    "device": lambda operators, origin, name: DEVICE,
    "result_type": _promoted_type,
    "max": _extreme("max"),
    "min": _extreme("min"),
    "is_autocast_enabled": lambda operators, origin: False,
    "is_grad_enabled": lambda operators, origin: True,
    # Also selects the ordinary operators: those that gradients need in any case.
    "_nested_tensor_from_mask_left_aligned": lambda operators, origin, x, mask: False,
    "__not__": _not,
    **{name: _scalar(name) for name in ("neg", "abs", "sqrt", "exp", "log", "round")},
    **{name: _scalar(name) for name in ("sin", "cos", "tanh")},
    **{name: _scalar(name, INT64) for name in ("floor", "ceil")},
    "__range_length": _range_length,
    "__derive_index": _derive_index,
}
