"""The functions that a pickle may call, each with its own implementation.

The table is closed: calls of other names are refused. The functions return data only,
so the worst that a file can do is to contain wrong values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from burn_import.frontends.checkpoints.limits import LIMITS, Limits
from burn_import.frontends.checkpoints.pickle_values import (
    Bytes,
    EnumValue,
    Global,
    Instance,
    Value,
    checked_key,
    named,
)
from burn_ir import InvalidModel, Problem, UnsupportedModel

Loader: TypeAlias = "Callable[[memoryview, Context], Value]"


@dataclass
class Context:
    """State shared by all calls of one file: limits, and the amounts used.

    ``nested`` reads a storage that was pickled to bytes; None inside of such bytes.
    """

    limits: Limits = LIMITS
    nested: Loader | None = None
    spent: list[int] = field(default_factory=lambda: [0])

    def operations_left(self) -> int:
        """Return the number of instructions that may still run."""
        return max(self.limits.operations - self.spent[0], 0)

    def spend(self, amount: int) -> None:
        """Count executed instructions, and elements that calls copied.

        Raises:
            UnsupportedModel: the sum exceeds the limit.
        """
        self.spent[0] += amount
        if self.spent[0] > self.limits.operations:
            raise UnsupportedModel("a pickle that exceeds the limit on operations")

    def within(self) -> Context:
        """Return the context of a file that is saved inside this one."""
        return replace(self, nested=None)


_REMEDY = (
    "where you trust the file, load it in PyTorch and save the state_dict of its model"
)
Function = Callable[[Context, tuple[Value, ...]], Value]
#: Functions by name, with their least and greatest number of arguments.
FUNCTIONS: dict[str, tuple[Function, int, int]] = {}


def rebuilds(
    *names: str, args: tuple[int, int]
) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Return a decorator that registers a function under names.

    ``args`` are the least and greatest number of its arguments.
    """

    def register(function: Callable[..., Value]) -> Callable[..., Value]:
        for name in names:
            FUNCTIONS[name] = (lambda c, a: function(c, *a)), *args
        return function

    return register


def call(context: Context, function: Value, args: Value) -> Value:
    """Return the result of a call.

    Raises:
        UnsupportedModel: the function is not in the table.
        InvalidModel: the arguments have the wrong number or types.
    """
    if not isinstance(function, Global):
        raise UnsupportedModel(f"the pickle calls {named(function)}, not a function")
    if _is_enumeration(function, args):
        return EnumValue(function, args)
    if function.path not in FUNCTIONS:
        message = (
            f"the pickle calls {function}, which is refused: only functions that are "
            "known to rebuild tensors and plain data are allowed, since any other can "
            "run code"
        )
        raise UnsupportedModel([Problem(message, hint=_REMEDY)])
    body, low, high = FUNCTIONS[function.path]
    if not isinstance(args, tuple) or not low <= len(args) <= high:
        got = len(args) if isinstance(args, tuple) else named(args)
        raise InvalidModel(f"{function}: expected {low} to {high} arguments, got {got}")
    return body(context, args)


def _is_enumeration(kind: Global, args: Value) -> bool:
    """Return whether a call makes a member of an enumeration of TorchScript's code.

    PyTorch writes its value in place of a tuple of arguments.
    """
    return kind.module.startswith("__torch__.") and type(args) in (str, int, float)


def make(kind: Global, args: Value) -> Value:
    """Return an inert object in place of ``kind.__new__(*args)``.

    Raises:
        InvalidModel: there are no arguments.
    """
    if not isinstance(args, tuple):
        raise InvalidModel(f"{kind}: expected arguments, got {named(args)}")
    if kind.path in _DICTS and not args:
        return {}
    return Instance(kind, args)


_DICTS = ("collections.OrderedDict", "collections.defaultdict")


@rebuilds("collections.OrderedDict", "collections.Counter", args=(0, 1))
def ordered_dict(context: Context, pairs: Value = ()) -> Value:
    """Return a dict of pairs, or a copy of a dict."""
    if isinstance(pairs, dict):
        context.spend(len(pairs))
        return dict(pairs)
    if not isinstance(pairs, list | tuple):
        raise InvalidModel(f"expected pairs of a dict, got {named(pairs)}")
    context.spend(2 * len(pairs))  # unpacked and checked below
    result = {}
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise InvalidModel(f"expected a pair of a dict, got {named(pair)}")
        result[checked_key(pair[0])] = pair[1]
    return result


@rebuilds("collections.defaultdict", args=(0, 1))
def default_dict(context: Context, factory: Value = None) -> Value:
    """Return an empty dict; the default factory is not called."""
    return {}


@rebuilds("torch.Size", args=(0, 1))
def size(context: Context, values: Value = ()) -> Value:
    """Return the extents of a shape, given as a tuple or a list."""
    return values


_ROOTS = ("__builtin__.object", "builtins.object")


@rebuilds("copy_reg._reconstructor", "copyreg._reconstructor", args=(3, 3))
def reconstructor(context: Context, kind: Value, base: Value, state: Value) -> Value:
    """Return an inert object, as protocols 0 and 1 describe one."""
    plain = isinstance(base, Global) and base.path in _ROOTS
    if not plain or not isinstance(kind, Global):
        raise UnsupportedModel(
            f"an object of {named(kind)}, which extends {named(base)}"
        )
    return Instance(kind)


@rebuilds("_codecs.encode", args=(2, 2))
def encode(context: Context, text: Value, encoding: Value) -> Value:
    """Return the bytes that protocols 0 to 2 write as text."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1", "utf-8"):
        raise InvalidModel("_codecs.encode: expected text and latin1")
    context.spend(len(text) // 16)
    try:
        return text.encode(encoding)
    except UnicodeEncodeError:
        raise InvalidModel("_codecs.encode: expected text in latin1") from None


@rebuilds("builtins.bytes", "__builtin__.bytes", args=(0, 0))
def no_bytes(context: Context) -> Value:
    """Return empty bytes, as protocols 0 to 2 write them."""
    return b""


@rebuilds("builtins.bytearray", "__builtin__.bytearray", args=(0, 2))
def byte_array(context: Context, content: Value = b"", encoding: Value = "") -> Value:
    """Return bytes, given as such or as text."""
    if isinstance(content, str):
        return encode(context, content, encoding)
    if not isinstance(content, Bytes):
        raise InvalidModel(f"bytearray: expected bytes, got {named(content)}")
    return content


@rebuilds(
    *(
        f"{module}.{name}"
        for module in ("builtins", "__builtin__")
        for name in ("set",)
    ),
    *("builtins.frozenset", "__builtin__.frozenset"),
    args=(0, 1),
)
def unordered(context: Context, values: Value = ()) -> Value:
    """Return an inert object in place of a set."""
    result = Instance(Global("builtins", "set"))
    if isinstance(values, list | tuple):
        context.spend(len(values))
        result.elements = list(values)
    return result


def inert(name: str) -> None:
    """Register a class whose call returns an inert object."""
    module, _, last = name.rpartition(".")
    kind = Global(module, last)
    FUNCTIONS[name] = (lambda c, args: Instance(kind, args)), 0, 32


#: Classes of the standard library that occur beside tensors in checkpoints.
_PLAIN = (
    *(f"builtins.{name}" for name in ("complex", "range", "slice")),
    *(f"__builtin__.{name}" for name in ("complex", "slice", "xrange")),
    *("datetime.date", "datetime.datetime", "datetime.time", "datetime.timedelta"),
    *("datetime.timezone", "decimal.Decimal", "fractions.Fraction", "uuid.UUID"),
    *(f"pathlib.{p}{k}Path" for p in ("", "Pure") for k in ("Posix", "Windows", "")),
    *(f"pathlib._local.{p}{k}Path" for p in ("", "Pure") for k in ("Posix", "")),
    *("functools.partial", "collections.deque", "types.SimpleNamespace"),
    *("torch.device", "torch.serialization._get_layout", "torch.Generator"),
)
for _name in _PLAIN:
    inert(_name)
