"""Machine code for single calls of a plan: a NumPy function or a whole kernel."""

from collections.abc import Callable
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from burn.backend.cpu.bind.calls import StepCall
from burn.backend.cpu.bind.finite import expect_numbers
from burn.backend.cpu.bind.magnitudes import expect_few_within, expect_within
from burn.backend.cpu.bind.numpy_capture import assign, item, take_rows
from burn.backend.cpu.blas.attention import attend
from burn.backend.cpu.blas.expansion import expand
from burn.backend.cpu.blas.generated_convolution import convolve
from burn.backend.cpu.blas.generated_rows import multiply_row
from burn.backend.cpu.blas.integers import (
    multiply_integers,
    round_to_bytes,
    write_extremes,
    write_scale,
)
from burn.backend.cpu.blas.resampling import sum_lines
from burn.backend.cpu.jit.batches import Batch
from burn.backend.cpu.jit.casts import cast_kernel
from burn.backend.cpu.jit.entries import GENERATED, Entry, Free, batches
from burn.backend.cpu.jit.gather_scatter import (
    COMBINE,
    Place,
    gather_kernel,
    scatter_kernel,
)
from burn.backend.cpu.jit.images.channel_scales import scaled_images_kernel
from burn.backend.cpu.jit.images.convolution import convolution_kernel
from burn.backend.cpu.jit.images.expansion import expansion_kernel
from burn.backend.cpu.jit.images.resampling import resampling_kernel
from burn.backend.cpu.jit.integers.products import product_kernel
from burn.backend.cpu.jit.integers.quantization import (
    extremes_kernel,
    rounding_kernel,
    scale_kernel,
)
from burn.backend.cpu.jit.kernel_replacement import Finders, Pair, Single, with_kernels
from burn.backend.cpu.jit.magnitude_check import limit_kernel
from burn.backend.cpu.jit.operands import RowOperands
from burn.backend.cpu.jit.policy import KernelPolicy
from burn.backend.cpu.jit.products.attention import attention_kernel
from burn.backend.cpu.jit.products.single_rows import row_kernel
from burn.backend.cpu.jit.products.small import matmul_kernel
from burn.backend.cpu.jit.searches import extreme_kernel, nonzero_kernel
from burn.backend.cpu.jit.selection import LEAST_TOGETHER
from burn.backend.cpu.jit.source import Kernel
from burn.backend.cpu.jit.suppression import generated_kernel, suppression_kernel
from burn.backend.cpu.jit.take import take_kernel
from burn.backend.cpu.jit.unique import distinct_kernel
from burn.backend.cpu.jit.weighted_sums import gather_sum_kernel
from burn.backend.cpu.onednn.binding.memory import address
from burn.backend.cpu.onednn.kernels.norms.generated_scales import scale_channels
from burn.ops.support import Array

#: Nanoseconds that a call of machine code takes from Python.
_CALL = 450
#: Nanoseconds of a call without elements, by function.
_CHECK, _COPY, _INDEX, _SEARCH, _PRODUCT = 1_000, 600, 1_300, 2_000, 1_300
#: Nanoseconds of a check of one element: NumPy finds two extremes.
_CHECKED = 0.1
#: Nanoseconds of a product and a sum of a convolution by NumPy.
_MULTIPLIED = 0.02
#: Nanoseconds of a unit of work of an expanded depthwise convolution by NumPy.
_EXPANDED = 1.0
#: Nanoseconds of a unit of work of attention by oneDNN or NumPy.
_ATTENDED = 0.1
#: Nanoseconds of a weight of a product of one row by NumPy.
_READ = 0.25
#: Nanoseconds of a batch norm by NumPy without elements, of an element, and of its copy
#: by a concatenation.
_CHANGE, _SCALED, _COPIED = 2_000, 0.5, 0.25
#: Nanoseconds of a unit of work of a product of integers by NumPy.
_INTEGERS = 0.1
#: Nanoseconds of a product and a sum of a resampling by NumPy.
_RESAMPLED = 1.0
#: Nanoseconds of an element that NumPy quantizes, or compares for a range.
_ROUNDED, _COMPARED = 1.5, 0.3
_STEPS = {"gather_sum": 20_000, "nonzero": 5_000, "unique": 20_000}
_STEPS["non_max_suppression"] = 40_000


def as_machine_code(
    entries: list[Entry], frees: list[Free], policy: KernelPolicy
) -> tuple[list[Entry], list[Any]]:
    """Return the calls, with those of NumPy replaced by generated kernels.

    The second result must live as long as the calls.
    """
    entries, frees = checks_ahead(entries, frees)
    entries, owned = with_kernels(entries, frees, policy, Finders(single, pair))
    return list(map(_with_generated_kernel, entries)), owned


def single(call: Callable[[], Any]) -> Single | None:
    """Return the kernel of a call, None if there is none."""
    if type(call) is StepCall:
        kernel = _step_kernel(call)
        time = _STEPS.get(call.step.primitive.name, 0)
    elif type(call) is partial:
        kernel, time = _function_kernel(call.func, call.args, call.keywords)
    else:
        return None
    return None if kernel is None else Single(kernel, time)


def checks_ahead(
    entries: list[Entry], frees: list[Free]
) -> tuple[list[Entry], list[Free]]:
    """Return the calls, with checks of values ahead of concatenations of others.

    A batch norm follows directly on the concatenation of its operand then. Memory that
    a concatenation reads is dead after it, also where that comes later now.
    """
    order: list[int] = []
    for number, entry in enumerate(entries):
        position, call = number, entry.call
        check = (
            _checked_operand(call.func, call.args) if type(call) is partial else None
        )
        if check is not None:
            while position and _joins_others(
                entries[order[position - 1]].call, check[0]
            ):
                position -= 1
        order.insert(position, number)
    places = sorted(range(len(order)), key=order.__getitem__)
    calls = [0, *(last + 1 for last in accumulate(places, max))]
    frees = [free._replace(calls=calls[free.calls]) for free in frees]
    return [entries[number] for number in order], frees


def _joins_others(call: Callable[[], Any], array: Array) -> bool:
    """Return whether a call concatenates, to other memory than that of ``array``."""
    if type(call) is not partial or call.func is not np.concatenate:
        return False
    out = call.keywords.get("out")
    return out is not None and not np.may_share_memory(out, array)


def pair(one: Callable[[], Any], other: Callable[[], Any]) -> Pair | None:
    """Return the kernel of a concatenation of channels and the batch norm behind it."""
    if type(one) is not partial or one.func is not np.concatenate:
        return None
    if type(other) is not partial or other.func is not scale_channels:
        return None
    axis = one.args[1] if len(one.args) > 1 else one.keywords.get("axis", 0)
    joint, (x, scale, shift, out, has_relu) = one.keywords.get("out"), other.args
    if axis != 1 or joint is None or address(joint) != address(x):
        return None
    kernel = scaled_images_kernel(list(one.args[0]), scale, shift, out, has_relu)
    if kernel is None:
        return None
    time = _CHANGE + int((_COPIED + _SCALED) * x.size)
    return Pair(Single(kernel, time), None if address(out) == address(x) else joint)


def _with_generated_kernel(entry: Entry) -> Entry:
    """Return an entry that calls a generated kernel as a whole, if there is one."""
    call = entry.call
    if type(call) is not StepCall:
        return entry
    kernel = generated_kernel(call.step.primitive, call.args)
    if kernel is None:
        return entry
    return entry._replace(call=call.with_kernel(kernel), kernel=GENERATED)


def _step_kernel(call: StepCall) -> Kernel | None:
    name, targets = call.step.primitive.name, call.targets
    if not call.is_fixed:
        return None
    args, static = call.args, call.step.static
    if name == "gather_sum":
        weight = args[2] if len(args) > 2 else None
        return gather_sum_kernel(args[0], args[1], weight, targets[0])
    if name == "nonzero":
        return nonzero_kernel(args[0], targets[0])
    if name == "unique" and static.get("axis") is None and static.get("sorted", True):
        return distinct_kernel(args[0], targets)
    if name == "non_max_suppression":
        return suppression_kernel(targets[0], *args, **static)
    return None


def _function_kernel(function: Any, args: Any, named: Any) -> tuple[Kernel | None, int]:
    check = _checked_operand(function, args)
    if check is not None:
        return _check_kernel(*check)
    if function is np.copyto and named.keys() <= {"casting"}:
        return cast_kernel(*args), _COPY
    if function is np.matmul and named.keys() == {"out"}:
        return matmul_kernel(args[0], args[1], named["out"]), _PRODUCT
    if function is scale_channels:
        kernel = scaled_images_kernel([args[0]], *args[1:])
        return kernel, _CHANGE + int(_SCALED * args[0].size)
    if function in _LAYERS:
        return _LAYERS[function](*args)
    if function is take_rows:
        source, indices, axis, target = args
        return take_kernel(source, indices, axis, target), _INDEX
    if function is assign:
        return _assignment_kernel(*args)
    owner = getattr(function, "__self__", None)
    if isinstance(owner, np.ndarray) and not named:
        return _method_kernel(owner, function.__name__, args), _INDEX
    if isinstance(owner, np.ufunc) and function.__name__ == "at":
        return _scatter_kernel(owner.__name__, *args), _INDEX
    return None, 0


def _convolution(*args: Any) -> tuple[Kernel, int]:
    _, weight, _, _, out, wins, _ = args
    work = out.size * weight.shape[-2] * wins.taps
    return convolution_kernel(*args), _PRODUCT + int(_MULTIPLIED * work)


def _row_product(given: RowOperands) -> tuple[Kernel, int]:
    return row_kernel(given), _PRODUCT + int(_READ * given.weight.size)


def _by_work(make: Callable[..., Kernel], time: float, *args: Any) -> Any:
    """Return a kernel, and ``time`` for each unit of its work."""
    kernel = make(*args)
    return kernel, _PRODUCT + int(time * kernel.work)


def _by_size(make: Callable[..., Kernel | None], time: float, *args: Any) -> Any:
    """Return a kernel, and ``time`` for each element of the first operand."""
    return make(*args), _CHANGE + int(time * args[0].size)


#: The functions of layers, and those of dynamic quantization.
_LAYERS: dict[Any, Callable[..., tuple[Kernel | None, int]]] = {
    attend: partial(_by_work, attention_kernel, _ATTENDED),
    convolve: _convolution,
    expand: partial(_by_work, expansion_kernel, _EXPANDED),
    multiply_integers: partial(_by_work, product_kernel, _INTEGERS),
    multiply_row: _row_product,
    sum_lines: partial(_by_work, resampling_kernel, _RESAMPLED),
    round_to_bytes: partial(_by_size, rounding_kernel, _ROUNDED),
    write_extremes: partial(_by_size, extremes_kernel, _COMPARED),
    write_scale: partial(_by_size, scale_kernel, 0),
}


def _checked_operand(function: Any, args: Any) -> tuple[Array, float] | None:
    """Return the array and the limit of a check of magnitudes, None if it is none."""
    if function is expect_few_within:
        source, memory, _, _, limit, _ = args
        return memory if source is None else source, limit
    if function is expect_within:
        array, limit = args
        return array, limit
    return (args[0], np.inf) if function is expect_numbers else None


def _check_kernel(array: Array, limit: float) -> tuple[Kernel | None, int]:
    return limit_kernel(array, limit), _CHECK + int(_CHECKED * array.size)


def _assignment_kernel(
    target: Array, call: Callable[[], Any]
) -> tuple[Kernel | None, int]:
    """Return the kernel of a function whose result is copied to ``target``."""
    if type(call) is not partial:
        return None, 0
    function, args, named = call.func, call.args, call.keywords
    if function is item:
        source, key = args
        indices = _indices(key)
        kernel = (
            None if indices is None else gather_kernel(Place(source, indices), target)
        )
        return kernel, _INDEX
    if function in (np.argmin, np.argmax) and len(args) <= 2:
        axis = args[1] if len(args) > 1 else named.get("axis")
        if axis is not None and named.keys() <= {"axis", "keepdims"}:
            name = function.__name__
            return extreme_kernel(name, args[0], axis, target), _SEARCH
    return None, 0


def _method_kernel(owner: Array, name: str, args: Any) -> Kernel | None:
    if name == "take" and len(args) == 3 and type(args[1]) is int:
        return take_kernel(owner, *args) if isinstance(args[0], np.ndarray) else None
    if name == "__setitem__":
        return _scatter_kernel("copy", owner, *args)
    return None


def _scatter_kernel(name: str, target: Array, key: Any, values: Any) -> Kernel | None:
    indices = _indices(key)
    if indices is None or name not in COMBINE or not isinstance(values, np.ndarray):
        return None
    return scatter_kernel(name, Place(target, indices), values)


def _indices(key: Any) -> tuple[Array, ...] | None:
    """Return the items of a key if all are index arrays, else None."""
    key = key if type(key) is tuple else (key,)
    if all(isinstance(each, np.ndarray) for each in key):
        return tuple(key)
    return None


def are_worth_batches(entries: list[Entry]) -> bool:
    """Return whether consecutive calls of machine code should be one call.

    This requires LLVM, whose loading takes time if no kernel needs it.
    """
    if any(entry.kernel == GENERATED for entry in entries):
        return True
    saved = sum(_CALL * (len(each) - 1) for each in batches(entries, True))
    return saved >= LEAST_TOGETHER


def batch(entries: list[Entry]) -> Batch:
    """Return one call of several functions of machine code."""
    natives = [entry.native for entry in entries if entry.native is not None]
    has_engine = any(entry.alone is not None for entry in entries)
    return Batch(natives, [entry.call for entry in entries], has_engine=has_engine)
