"""Calls of ``torch.*``: numbers are evaluated, tensors become nodes by the rules."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from burn_import.frontends.torch_export.aten import RULES
from burn_import.frontends.torch_export.builder import (
    BOOL,
    FLOAT64,
    INT64,
    Value,
    kind_of,
)
from burn_import.frontends.torch_export.complex_as_real import stored_array, viewed_as
from burn_import.frontends.torch_export.registry import Entry
from burn_import.frontends.torch_export.rule_calls import rule_of
from burn_import.frontends.torchscript.archive import Budget
from burn_import.frontends.torchscript.node_writer import NodeWriter
from burn_import.frontends.torchscript.operators.builtins import (
    SPECIAL,
    AtenCall,
    OperatorCalls,
    computed_tensor,
    has_computed_numbers,
    lists_differ,
)
from burn_import.frontends.torchscript.operators.constant_functions import (
    bounded,
    function_of_anything,
    function_of_numbers,
)
from burn_import.frontends.torchscript.operators.dtypes import result_types, scalar_type
from burn_import.frontends.torchscript.operators.dynamic_lists import (
    called_on_rows,
    is_open_list_call,
)
from burn_import.frontends.torchscript.operators.signatures import overload
from burn_import.frontends.torchscript.operators.views import (
    REPEATED,
    copies,
    redoing,
    stays_in_order,
    undoing,
)
from burn_import.frontends.torchscript.values import (
    DEVICE,
    UNKNOWN,
    PyValue,
    TensorRef,
    UncomputedResult,
    Without,
    rebuilt,
)
from burn_ir import ModelError, UnsupportedModel
from burn_ir.error_context import FAULTS, error_text
from burn_ir.graph_builder import Origin

#: Operators in place of functions of numbers that are unknown before run time.
_COMPUTED: Mapping[str, str] = {
    **{name: name for name in ("add", "sub", "mul", "pow", "floordiv")},
    **{name: name for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "div": "truediv",
    "floor_divide": "floordiv",
    "remainder": "mod",
}


class Operators(OperatorCalls):
    """Interpreter of operator calls. ``writer`` receives the nodes."""

    def __init__(self) -> None:
        self.writer = NodeWriter()
        #: The tensors changed in place, with their values before.
        self.journal: list[tuple[TensorRef, Value]] = []

    def call(
        self,
        name: str,
        args: list[PyValue],
        kwargs: dict[str, PyValue],
        origin: Origin,
        count: int | None = None,
    ) -> PyValue:
        """Return the result of ``torch.name(*args, **kwargs)``.

        Raises:
            UnsupportedModel: the operator is not supported.
            InvalidModel: the arguments do not fit.
        """
        if args and isinstance(args[0], list | dict | tuple | str):
            self.budget.step(len(args[0]))
        if is_open_list_call(name, args, count):
            return called_on_rows(self, name, [*args, *kwargs.values()], origin)
        function = function_of_anything(name, args)
        if function is not None:
            return _evaluate(function, args, kwargs)
        call_arguments = [*args, *kwargs.values()]
        parts = list(self.leaves(call_arguments))
        if any(part is UNKNOWN for part in parts):
            return UNKNOWN
        if not any(isinstance(part, TensorRef | Value) for part in parts):
            function = function_of_numbers(name)
            if function is not None:
                return _evaluate(function, args, kwargs)
        if name in ("eq", "ne") and all(isinstance(x, list) for x in args):
            return lists_differ(self, origin, *args) is (name == "ne")
        if name in SPECIAL:
            return SPECIAL[name](self, origin, *args, **kwargs)
        is_number = (
            not any(isinstance(part, TensorRef) for part in parts) and name in _COMPUTED
        )
        if is_number and any(isinstance(x, Value) for x in args):
            return self.number(f"_operator.{_COMPUTED[name]}", args, origin)
        return self.operator(name, args, kwargs, origin, count)

    @property
    def budget(self) -> Budget:
        """The remaining steps and nodes of the program."""
        return self.writer.budget

    def leaves(self, obj: PyValue) -> Iterator[PyValue]:
        """Yield the leaves of nested lists, tuples and dicts.

        Raises:
            TooMuch: there are too many, or the nesting is cyclic.
        """
        stack = [obj]
        while stack:
            item = stack.pop()
            self.budget.step()
            if isinstance(item, list | tuple):
                stack.extend(reversed(item))
            elif isinstance(item, dict):
                stack.extend(reversed(item.values()))
            else:
                yield item

    def operator(
        self,
        name: str,
        args: list[PyValue],
        kwargs: dict[str, PyValue],
        origin: Origin,
        count: int | None = None,
    ) -> PyValue:
        """Return the result of an ATen operator, a tensor or a list of them."""
        match = overload(
            name, _as_value(args), {k: _as_value(v) for k, v in kwargs.items()}
        )
        if match is None:
            raise UnsupportedModel(f"torch.{name} is not supported")
        target, bound = match
        named = {k: _argument(k, v) for k, v in bound.items() if v is not DEVICE}
        types = result_types(name, named, count)
        entry = rule_of(target, [*named.values(), types[0]])
        results = self.writer.apply(entry, origin, types, named)
        tensors = [
            x
            for x in self.leaves([*args, *kwargs.values()])
            if isinstance(x, TensorRef)
        ]
        if len(results) > len(entry.writes) > 0:
            results = self.write_call(name, entry, results, tensors, named)
        call = AtenCall(name, target, named, origin)
        return self.with_aliases(call, entry, results, tensors)

    def write_call(
        self,
        name: str,
        entry: Entry,
        results: list[Value | None],
        tensors: Sequence[TensorRef],
        named: Mapping[str, Any],
    ) -> list[Value | None]:
        """Return the results without in-place updates, which are applied."""
        count = len(results) - len(entry.writes)
        for key, value in zip(entry.writes, results[count:], strict=True):
            old = named.get(key)
            for tensor in tensors:
                if isinstance(old, Value) and value and tensor.value.name == old.name:
                    self.journal += tensor.change(value, f"torch.{name}")
        return results[:count]

    def with_aliases(
        self,
        call: AtenCall,
        entry: Entry,
        results: Sequence[Value | None],
        tensors: Sequence[TensorRef],
    ) -> PyValue:
        """Return the results as tensors that share memory as in PyTorch."""
        if entry.mutates is not None and tensors and results[0] is not None:
            changed = tensors[-1 if entry.mutates == "out" else 0]
            self.journal += changed.change(results[0], f"torch.{call.name}")
            return changed
        objs = [
            self._with_alias(call, entry, results, index, tensors)
            for index in range(len(results))
        ]
        is_nonzero = call.name == "where" and "other" not in call.args
        is_list = call.name in _LISTS or is_nonzero
        return objs[0] if len(objs) == 1 and not is_list else objs

    def _with_alias(
        self,
        call: AtenCall,
        entry: Entry,
        results: Sequence[Value | None],
        index: int,
        tensors: Sequence[TensorRef],
    ) -> TensorRef:
        name, result = call.name, results[index]
        if result is None:
            return UncomputedResult(name, index)
        value = replace(result, is_number=False)
        for source in tensors:
            if call.args.get("copy") is True or copies(name, source):
                return TensorRef(value)
            if name != "clone" and value.name == (source.stale or source.value.name):
                tensor = TensorRef(
                    value, source.memory, source, _unchanged, source.in_order
                )
                tensor.redo = partial(_unchanged, value)
                return tensor
            if entry.views and source is tensors[0]:
                undo = undoing(self, call, source)
                ordered = stays_in_order(name, call.args, source)
                tensor = TensorRef(value, source.memory, source, undo, ordered)
                if undo is not None or (name in REPEATED and "self" in call.args):
                    tensor.redo = redoing(self, call, results, value)
                return tensor
        return TensorRef(value)

    def number(self, target: str, args: Sequence[PyValue], origin: Origin) -> PyValue:
        """Return the result of a function of numbers, as a number if known."""
        if target not in RULES:
            raise UnsupportedModel(
                f"{target} of values known only at run time is not supported"
            )
        is_test = target.rpartition(".")[2] in _TESTS
        is_whole = all(isinstance(x, int) or _is_whole(x) for x in args)
        dtype = INT64 if is_whole and "truediv" not in target else FLOAT64
        result = Value("", BOOL if is_test else dtype, (), True)
        named = {f"{index}": x for index, x in enumerate(args)}
        (value,) = self.writer.apply(RULES[target], origin, [result], _unnamed(named))
        assert value is not None
        return self.as_known_number(replace(value, is_number=True))

    def as_known_number(self, number: Value) -> PyValue:
        """Return a number, as a Python number if its value is known."""
        contents = self.writer.number(number)
        return number if contents is None else contents

    def size(self, origin: Origin, x: TensorRef, dim: int | None = None) -> PyValue:
        """Return an extent of a tensor, or all of them."""
        dims = x.value.dims
        if dims is None:
            raise UnsupportedModel("the extents of a tensor of unknown rank are read")
        if dim is None:
            return [self.size(origin, x, axis) for axis in range(len(dims))]
        extent = dims[dim]
        if isinstance(extent, int):
            return extent
        key = (x.value.name, dim % len(dims), origin.scope)
        if key not in self.writer.extents:
            named = {"self": x.value, "dim": dim}
            result = [Value("", INT64, (), True)]
            extents = self.writer.apply(
                RULES["aten.sym_size.int"], origin, result, named
            )
            assert extents[0] is not None
            self.writer.extents[key] = replace(extents[0], is_number=True)
        return self.as_known_number(self.writer.extents[key])

    def as_number(self, x: PyValue, origin: Origin) -> PyValue:
        """Return a tensor of one element as a number; numbers unchanged."""
        if not isinstance(x, TensorRef):
            return x
        value = x.value
        contents = self.writer.number(value)
        if contents is not None:
            return contents
        if value.dims:
            builder = self.writer.builder(origin, [value])
            begin = len(self.writer.nodes.nodes)
            value = builder.op("Reshape", value, builder.constant([]))
            self.writer.finish(begin)
            value = self.writer.typed(value)
        return Value(value.name, value.dtype, (), True)

    def convert(self, kind: type, x: PyValue, origin: Origin) -> PyValue:
        """Return ``int(x)``, ``float(x)`` or ``bool(x)``."""
        if isinstance(x, Without):
            return x
        number = self.as_number(x, origin)
        if not isinstance(number, Value):
            return bounded(kind(number))
        dtype = {int: INT64, float: FLOAT64, bool: BOOL}[kind]
        if number.dtype == dtype:
            return number
        entry = RULES["aten.to.dtype"]
        result = Value("", dtype, (), True)
        named = {"self": number, "dtype": dtype}
        (value,) = self.writer.apply(entry, origin, [result], named)
        assert value is not None
        return self.as_known_number(Value(value.name, dtype, (), True))

    def tensor(self, x: PyValue, origin: Origin, dtype: Any = None) -> TensorRef:
        """Return a number, or a list of numbers, as a tensor."""
        if isinstance(x, TensorRef):
            return x
        if has_computed_numbers(x):
            return computed_tensor(self, x, origin, dtype)
        array = np.asarray(x)
        if array.dtype in _WIDE:
            array = array.astype(_WIDE[array.dtype])
        if dtype is not None:
            array = array.astype(dtype)
        builder = self.writer.builder(origin, [])
        begin = len(self.writer.nodes.nodes)
        pairs = stored_array(array)
        constant = builder.constant(pairs, pairs.dtype)
        self.writer.finish(begin)
        return TensorRef(self.writer.typed(replace(constant, dtype=array.dtype)))


#: PyTorch's default dtypes for NumPy's dtypes of Python numbers.
_WIDE: Mapping[Any, Any] = {
    FLOAT64: np.dtype("float32"),
    np.dtype("complex128"): np.dtype("complex64"),
}


_TESTS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "and_", "or_"})
_LISTS = frozenset(
    {
        *("split", "split_with_sizes", "chunk", "unbind", "meshgrid", "tensor_split"),
        *("hsplit", "vsplit", "dsplit", "broadcast_tensors", "unsafe_split"),
        *("unsafe_chunk", "gradient", "unbind_copy"),
    }
)


def _unchanged(before: Value, changed: Value) -> Value:
    """Return the value of an alias of a changed tensor."""
    return viewed_as(changed, before)


def _evaluate(
    function: Callable[..., PyValue], args: list[PyValue], kwargs: dict[str, PyValue]
) -> PyValue:
    try:
        return bounded(function(*args, **kwargs))
    except ModelError:
        raise
    except FAULTS as error:
        raise UnsupportedModel(error_text(error)) from error


def _is_whole(x: PyValue) -> bool:
    return isinstance(x, Value) and kind_of(x.dtype) <= kind_of(INT64)


def _unnamed(named: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments under the parameter names that all such rules share."""
    return dict(zip(("self", "other"), named.values(), strict=False))


def _as_value(obj: PyValue) -> PyValue:
    """Return an object with tensor references replaced by their values."""
    if isinstance(obj, TensorRef):
        return obj.value
    if isinstance(obj, list | tuple):
        return rebuilt(obj, (_as_value(item) for item in obj))
    return obj


def _argument(name: str, value: Any) -> Any:
    if name in ("dtype", "out_dtype") and value is not None:
        return scalar_type(value)
    return value
