"""Evaluation of functions on known numbers, strings, lists and dicts.

Results are bounded: numbers have 64 bits, as in TorchScript, and the length of lists
and strings is limited.
"""

import math
import operator
from collections.abc import Callable
from functools import reduce
from itertools import chain, zip_longest
from typing import Any

from burn_import.frontends.torch_export.builder import Value, promoted_dtype
from burn_import.frontends.torchscript.operators.dtypes import (
    scalar_number,
    scalar_type,
)
from burn_import.frontends.torchscript.values import PyValue, UnknownText, text_of
from burn_ir import InvalidModel, UnsupportedModel

_MOST_ITEMS = 10_000
_LARGEST = 2**63


def _divide(a: Any, b: Any) -> Any:
    return a / b


def _remainder(a: Any, b: Any) -> Any:
    return a % b


def _power(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and abs(b) > 64 and abs(a) > 1:
        raise InvalidModel(f"{a} to the power of {b} does not fit 64 bits")
    return a**b


def _format(text: str, *values: PyValue) -> str:
    """Return a text with values in place of each ``{}``."""
    if isinstance(text, UnknownText):
        return text
    first, *rest = text.split("{}")
    parts = map(text_of, values[: len(rest)])
    pairs = zip_longest(parts, rest, fillvalue="{}")
    return reduce(operator.add, chain.from_iterable(pairs), first)


def _slice(
    items: Any, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    return items[start:end:step]


def _append(items: list[PyValue], item: PyValue) -> list[PyValue]:
    _extend(items, [item])
    return items


def _extend(items: list[PyValue], more: list[PyValue]) -> None:
    if len(items) + len(more) > _MOST_ITEMS:
        raise UnsupportedModel(f"a list of more than {_MOST_ITEMS} items")
    items.extend(more)


def _insert(items: list[PyValue], origin: int, item: PyValue) -> None:
    items.insert(origin, item)


def _pop(items: Any, origin: Any = -1) -> PyValue:
    return items.pop(origin)


def _repeat(items: Any, count: Any) -> Any:
    if isinstance(items, list | str) and len(items) * max(count, 0) > _MOST_ITEMS:
        raise UnsupportedModel(f"a list of more than {_MOST_ITEMS} items")
    return items * count


def _range_length(low: int, high: int, step: int) -> int:
    return len(range(low, high, step))


def _derive_index(index: int, start: int, step: int) -> int:
    return start + index * step


def _get(
    entries: dict[PyValue, PyValue], key: PyValue, default: PyValue = None
) -> PyValue:
    return entries.get(key, default)


def _set(entries: Any, key: PyValue, value: PyValue) -> None:
    if isinstance(entries, list) and not isinstance(key, int):
        raise UnsupportedModel(
            "the index of an assigned list item is known only at run time"
        )
    entries[key] = value


def _largest(*values: Any) -> Any:
    return max(*values) if len(values) > 1 else max(values[0])


def _smallest(*values: Any) -> Any:
    return min(*values) if len(values) > 1 else min(values[0])


def _promoted_dtype(first: int, second: int) -> int:
    """Return the ``ScalarType`` number that two dtypes promote to."""
    types = [Value("", scalar_type(number)) for number in (first, second)]
    return scalar_number(promoted_dtype(types))


def _nothing(*values: PyValue) -> None:
    return None


#: Functions of numbers that are all known.
_OF_NUMBERS: dict[str, Callable[..., PyValue]] = {
    "promote_types": _promoted_dtype,
    "add": operator.add,
    "sub": operator.sub,
    "mul": _repeat,
    "div": _divide,
    "true_divide": _divide,
    "floordiv": operator.floordiv,
    "floor_divide": operator.floordiv,
    "remainder": _remainder,
    "fmod": math.fmod,
    "pow": _power,
    "neg": operator.neg,
    "abs": abs,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "__and__": operator.and_,
    "__or__": operator.or_,
    "__xor__": operator.xor,
    "__lshift__": lambda a, b: a << min(b, 64),
    "__rshift__": operator.rshift,
    "__not__": operator.not_,
    "max": _largest,
    "min": _smallest,
    "ceil": math.ceil,
    "floor": math.floor,
    "round": round,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "sin": math.sin,
    "cos": math.cos,
    "tanh": math.tanh,
    "sum": lambda items: sum(items),
    "any": lambda items: any(items),
    "all": lambda items: all(items),
    "sorted": lambda items: sorted(items),
    "startswith": lambda text, start: text.startswith(start),
    "endswith": lambda text, end: text.endswith(end),
    "lower": lambda text: text.lower(),
    "upper": lambda text: text.upper(),
    "__range_length": _range_length,
    "__derive_index": _derive_index,
}
#: Functions of any values, known or not.
_OF_ANYTHING: dict[str, Callable[..., PyValue]] = {
    "__is__": lambda a, b: a is None if b is None else a is b,
    "__isnot__": lambda a, b: a is not None if b is None else a is not b,
    "dict": lambda items=(): dict(items),
    "format": _format,
    "warn": _nothing,
}
#: Functions of a container, which is the first argument.
_OF_CONTAINERS: dict[str, Callable[..., PyValue]] = {
    "len": len,
    "append": _append,
    "extend": _extend,
    "insert": _insert,
    "pop": _pop,
    "slice": _slice,
    "add": operator.add,
    "add_": operator.iadd,
    "mul": _repeat,
    "copy": lambda items: items.copy(),
    "list": lambda items: list(items),
    "keys": lambda entries: list(entries.keys()),
    "values": lambda entries: list(entries.values()),
    "items": lambda entries: list(entries.items()),
    "get": _get,
    "_set_item": _set,
    "reverse": lambda items: items.reverse(),
    "clear": lambda items: items.clear(),
    "update": lambda entries, more: entries.update(more),
    "__contains__": lambda entries, key: key in entries,
    "__getitem__": operator.getitem,
}


def function_of_anything(
    name: str, args: list[PyValue]
) -> Callable[..., PyValue] | None:
    """Return the function ``torch.name`` if it accepts unknown values."""
    if name in _OF_ANYTHING:
        return _OF_ANYTHING[name]
    if not args or not isinstance(args[0], list | dict | tuple | str):
        return None
    if name == "mul" and not isinstance(args[1], int):
        return None
    return _OF_CONTAINERS.get(name)


def function_of_numbers(name: str) -> Callable[..., PyValue] | None:
    """Return the function ``torch.name`` of known values; None if none."""
    return _OF_NUMBERS.get(name)


def bounded(value: PyValue) -> PyValue:
    """Return ``value`` if TorchScript could hold it.

    Raises:
        InvalidModel: it is an integer beyond 64 bits, or a complex number.
    """
    if isinstance(value, complex):
        raise InvalidModel("expected a real number")
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        raise InvalidModel("a number does not fit 64 bits")
    if isinstance(value, str | list | tuple) and len(value) > _MOST_ITEMS:
        raise UnsupportedModel(f"a list or text of more than {_MOST_ITEMS} items")
    return value
