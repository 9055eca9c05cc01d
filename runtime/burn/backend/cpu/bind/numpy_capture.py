"""Capture of a kernel's NumPy calls by running it once on traced arrays.

Each NumPy function that the kernel calls is recorded with its operands and memory for
its result, so that a plan can repeat the calls without the kernel. Kernels with
value-dependent Python code cannot be captured.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from burn.backend.cpu.bind.memory_orders import reshaped_copy
from burn.backend.cpu.onednn.binding.capture import Notes
from burn.ops.support import Array

#: The bytes of a result whose copy takes longer than a check of indices.
LARGE = 1 << 15


class UntraceableError(Exception):
    """A kernel does something that cannot be captured."""


def _refused(self: "Traced", *args: Any, **options: Any) -> Any:
    raise UntraceableError("a method is called that is not captured")


class Traced(np.ndarray[Any, Any]):
    """A traced view of memory of a plan.

    NumPy dispatches its functions to it (``__array_ufunc__``, ``__array_function__``),
    but not array methods. Each of those is captured or rejected here.
    """

    tracer: Notes
    #: Whether the elements are the same in each run.
    constant: bool
    #: Not empty once something was done with it, or with a view that NumPy made of it.
    used: list[bool]

    def __array_finalize__(self, source: Any) -> None:
        self.tracer = getattr(source, "tracer", None)  # type: ignore[assignment]
        self.constant = getattr(source, "constant", False)
        self.used = getattr(source, "used", [])

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        if method == "at":
            return _at(function, *inputs)
        if method not in ("__call__", "reduce", "accumulate"):
            raise UntraceableError(f"{ufunc.__name__}.{method}")
        varies = _varies((inputs, options))
        options = {name: plain(value) for name, value in options.items()}
        operands = plain(inputs)
        if out is not None:
            (target,) = out
            if getattr(target, "constant", True) and varies:
                raise UntraceableError("a constant is written to")
            if not varies and getattr(target, "constant", True):
                function(*operands, out=plain(target), **options)
                return target
            function(*operands, out=plain(target), **options)
            self.tracer.note(partial(function, *operands, out=plain(target), **options))
            return target
        result = function(*operands, **options)
        if isinstance(result, tuple):
            raise UntraceableError(f"{ufunc.__name__} has several results")
        if not varies:
            return self._known(np.asarray(result))
        target = self._copy_to_plan(np.asarray(result))
        self.tracer.note(partial(function, *operands, out=plain(target), **options))
        return target

    def __array_function__(
        self, function: Any, types: Any, args: Any, kwargs: Any
    ) -> Any:
        special = _SPECIAL.get(function)
        if special is not None:
            return special(*args, **kwargs)
        varies = _varies((args, kwargs))
        args, kwargs = plain(args), plain(kwargs)
        result = function(*args, **kwargs)
        if function in _ASKING:
            return result
        if isinstance(result, list | tuple) and all(_is_view(f, args) for f in result):
            return [self._traced(part, not varies) for part in result]
        if not isinstance(result, np.ndarray | np.generic):
            raise UntraceableError(f"{function.__name__} gives {type(result).__name__}")
        if _is_view(result, args):
            return self._traced(result, not varies)
        if not varies:
            return self._known(np.asarray(result))
        function = _UFUNC_METHODS.get(function, function)
        call = partial(function, *args, **kwargs)
        if function not in _WITH_OUT:
            return self._assigned(np.asarray(result), call)
        target = self._copy_to_plan(np.asarray(result))
        self.tracer.note(_into(call, plain(target)))
        return target

    def _traced(self, array: Array, constant: bool) -> Any:
        return traced_view(array, self.tracer, constant)

    def _known(self, array: Array) -> Any:
        """Return a constant result."""
        return traced_view(array, self.tracer, constant=True)

    def _copy_to_plan(self, result: Array) -> Any:
        """Copy a result to memory of the plan, and return that."""
        target = self.tracer.shaped_as(result)
        np.copyto(target, result)
        return self._traced(target, constant=False)

    def _assigned(self, result: Array, call: Callable[[], Any]) -> Any:
        """Return the result of a function without an ``out`` argument, copied."""
        target = self._copy_to_plan(result)
        self.tracer.note(partial(assign, plain(target), call))
        return target

    def astype(  # type: ignore[override]
        self, dtype: Any, *args: Any, copy: bool = True, **options: Any
    ) -> Any:
        """Return the converted array, like ``numpy.ndarray.astype``."""
        if not copy and self.dtype == dtype:
            return self
        source = plain(self)
        if self.constant:
            return self._known(source.astype(dtype, copy=copy, **options))
        target = self._copy_to_plan(source.astype(dtype, **options))
        self.tracer.note(partial(np.copyto, plain(target), source, casting="unsafe"))
        return target

    def copy(self, order: Any = "C") -> Any:
        """Return a copy, which is never constant: a kernel writes to it."""
        target = self._copy_to_plan(plain(self))
        self.tracer.note(partial(np.copyto, plain(target), plain(self)))
        return target

    def reshape(self, *shape: Any, **options: Any) -> Any:
        """Return the reshaped array, like ``numpy.ndarray.reshape``."""
        source = plain(self)
        result = source.reshape(*shape, **options)
        if _is_view(result, source):
            return self._traced(result, self.constant)
        if self.constant:
            return self._known(result)
        target = self._copy_to_plan(reshaped_copy(result, source))
        call = partial(np.copyto, plain(target).reshape(source.shape), source)
        self.tracer.note(call)
        return target

    def __getitem__(self, key: Any) -> Any:
        varies = _varies((self, key))
        key, source = plain(key), plain(self)
        result = np.asarray(source[key])
        if _is_view(result, source):
            return self._traced(result, self.constant)
        if not varies:
            return self._known(result)
        return self._assigned(result, partial(item, source, key))

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.constant:
            raise UntraceableError("a constant is written to")
        key, value, target = plain(key), plain(value), plain(self)
        target[key] = value
        part = target[key]
        if _is_view(part, target) and np.ndim(value) <= part.ndim:
            self.tracer.note(partial(np.copyto, part, value, casting="unsafe"))
        else:
            self.tracer.note(partial(target.__setitem__, key, value))

    def sum(self, axis: Any = None, **options: Any) -> Any:  # type: ignore[override]
        return np.add.reduce(self, axis=axis, **options)

    def prod(self, axis: Any = None, **options: Any) -> Any:  # type: ignore[override]
        return np.multiply.reduce(self, axis=axis, **options)

    def max(self, axis: Any = None, **options: Any) -> Any:  # type: ignore[override]
        return np.maximum.reduce(self, axis=axis, **options)

    def min(self, axis: Any = None, **options: Any) -> Any:  # type: ignore[override]
        return np.minimum.reduce(self, axis=axis, **options)

    def any(self, axis: Any = None, **options: Any) -> Any:  # type: ignore[override]
        return np.logical_or.reduce(self, axis=axis, **options)

    def all(self, axis: Any = None, **options: Any) -> Any:  # type: ignore[override]
        return np.logical_and.reduce(self, axis=axis, **options)

    def mean(self, *args: Any, **options: Any) -> Any:
        return np.mean(self, *args, **options)

    def swapaxes(self, *axes: Any) -> Any:
        return np.swapaxes(self, *axes)

    def transpose(self, *axes: Any) -> Any:
        given = axes[0] if len(axes) == 1 else axes or None
        return np.transpose(self, given)

    def squeeze(self, *args: Any, **options: Any) -> Any:
        return np.squeeze(self, *args, **options)

    def repeat(self, *args: Any, **options: Any) -> Any:
        return np.repeat(self, *args, **options)

    def take(self, *args: Any, **options: Any) -> Any:
        return np.take(self, *args, **options)

    # These compute in C and call no method that could be recorded.
    argmax = argmin = argpartition = argsort = byteswap = choose = clip = _refused
    compress = conj = conjugate = cumprod = cumsum = diagonal = dot = dump = _refused
    dumps = fill = flatten = getfield = item = nonzero = partition = put = _refused
    ravel = resize = round = searchsorted = setfield = setflags = sort = _refused
    std = to_device = tofile = tolist = trace = var = _refused

    def __bool__(self) -> bool:
        raise UntraceableError("numbers are read")

    __int__ = __float__ = __index__ = __bool__


def _mean(x: Traced, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Return NumPy's mean of floats: the sum, divided in place."""
    if x.dtype.kind != "f":
        raise UntraceableError(f"the mean of {x.dtype}")
    total: Any = np.add.reduce(x, axis, keepdims=keepdims)  # type: ignore[call-overload]
    total /= total.dtype.type(x.size // max(total.size, 1))
    return total


def _where(condition: Any, x: Any, y: Any) -> Any:
    """Return ``np.where``, which has no ``out``, as two copies."""
    first, *_ = [a for a in (condition, x, y) if type(a) is Traced]
    varies = _varies((condition, x, y))
    condition, x, y = plain(condition), plain(x), plain(y)
    result = np.where(condition, x, y)
    if not varies:
        return first._known(np.asarray(result))
    target = first._copy_to_plan(np.asarray(result))
    first.tracer.note(partial(np.copyto, plain(target), y))
    first.tracer.note(partial(np.copyto, plain(target), x, where=condition))
    return target


def _copyto(target: Any, source: Any, **options: Any) -> None:
    if getattr(target, "constant", True):
        raise UntraceableError("a constant is written to")
    call = partial(np.copyto, plain(target), plain(source), **plain(options))
    call()
    target.tracer.note(call)


def _at(function: Callable[..., None], target: Any, *operands: Any) -> None:
    """Combine elements of ``target`` in place by ``at`` of a ufunc."""
    if getattr(target, "constant", True):
        raise UntraceableError("a constant is written to")
    call = partial(function, plain(target), *plain(operands))
    call()
    target.tracer.note(call)


def _stack(arrays: Any, axis: int = 0) -> Any:
    """Return ``np.stack`` as a concatenation, which is a single call in each run."""
    axis %= np.ndim(arrays[0]) + 1
    return np.concatenate([np.expand_dims(array, axis) for array in arrays], axis)


def _full_like(x: Any, value: Any, *, shape: Any = None) -> Any:
    """Return ``np.full_like`` of a number, which later steps may write to."""
    if isinstance(value, np.ndarray):
        raise UntraceableError("an array is repeated by full_like")
    target = x._copy_to_plan(np.full_like(plain(x), value, shape=shape))
    x.tracer.note(partial(plain(target).fill, value))
    return target


def _empty_like(x: Traced) -> Any:
    """Return memory for elements like those of ``x``, which later steps write to."""
    return x._copy_to_plan(plain(x))


def _reshape(x: Traced, *shape: Any, **options: Any) -> Any:
    return x.reshape(*shape, **options)


_UFUNC_METHODS = {
    np.sum: np.add.reduce,
    np.prod: np.multiply.reduce,
    np.max: np.maximum.reduce,
    np.min: np.minimum.reduce,
    np.any: np.logical_or.reduce,
    np.all: np.logical_and.reduce,
    np.cumsum: np.add.accumulate,
    np.cumprod: np.multiply.accumulate,
}
_WITH_OUT = {*_UFUNC_METHODS.values(), np.concatenate, np.einsum, np.take}
_SPECIAL: dict[Any, Callable[..., Any]] = {
    np.where: _where,
    np.copyto: _copyto,
    np.mean: _mean,
    np.reshape: _reshape,
    np.stack: _stack,
    np.full_like: _full_like,
    np.empty_like: _empty_like,
}
_ASKING = {np.shape, np.ndim, np.size, np.may_share_memory, np.result_type}


def traced_view(array: Array, tracer: Notes, constant: bool = False) -> Any:
    """Return a view of ``array`` whose operations are reported to ``tracer``."""
    view = array.view(Traced)
    view.tracer, view.constant, view.used = tracer, constant, []
    return view


def has_unused(value: Any) -> bool:
    """Return whether an array among arguments was never used.

    A kernel that depends on it has read it by untraced means: ``np.asarray`` returns
    NumPy's own array, which is not traced.
    """
    kind = type(value)
    if kind is Traced:
        return not value.used and not value.constant
    return (kind is tuple or kind is list) and any(map(has_unused, value))


def _varies(value: Any) -> bool:
    """Return whether a nested value contains an array that is not constant."""
    kind = type(value)
    if kind is Traced:
        return not value.constant
    if kind is tuple or kind is list:
        return any(map(_varies, value))
    return kind is dict and any(map(_varies, value.values()))


def plain(value: Any) -> Any:
    """Return ``value`` with plain NumPy arrays."""
    kind = type(value)
    if kind is Traced:
        value.used.append(True)
        return value.view(np.ndarray)
    if kind is tuple or kind is list:
        return kind([plain(item) for item in value])
    if kind is dict:
        return {name: plain(item) for name, item in value.items()}
    return value


def _is_view(result: Any, source: Any) -> bool:
    if isinstance(source, np.ndarray):
        return isinstance(result, np.ndarray) and bool(
            np.may_share_memory(result, source)
        )
    if isinstance(source, list | tuple):
        return any(_is_view(result, item) for item in source)
    return False


def _into(call: "partial[Any]", target: Array) -> Callable[[], Any]:
    """Return a call of a NumPy function with the result in ``target``."""
    indices = call.args[1] if len(call.args) > 1 else None
    is_plain = call.func is np.take and call.keywords.keys() <= {"axis"}
    if not is_plain or not isinstance(indices, np.ndarray):
        return partial(call, out=target)
    source, axis = call.args[0], call.keywords.get("axis", *call.args[2:3])
    if target.nbytes < LARGE or not indices.size or axis is None:
        return partial(source.take, indices, axis, target)
    return partial(take_rows, source, indices, axis, target)


def take_rows(source: Array, indices: Array, axis: int, target: Array) -> None:
    """Copy entries of ``source`` to ``target``.

    NumPy's own check of indices is made with a copy of the whole result.
    """
    extent = source.shape[axis]
    if not -extent <= indices.min() <= indices.max() < extent:
        source.take(indices, axis)  # raises
    source.take(indices, axis, target, "wrap")


def assign(target: Array, call: Callable[[], Any]) -> None:
    result = call()
    if np.shape(result) != target.shape:
        raise ValueError(f"expected {target.shape}, got {np.shape(result)}")
    target[...] = result


def item(source: Array, key: Any) -> Any:
    return source[key]
