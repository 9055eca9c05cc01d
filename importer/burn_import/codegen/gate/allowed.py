"""Tables of the constructs that generated source may contain."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from burn_import.tracing.identifiers import RESERVED

HEADER = re.compile(
    rb"# Imported by burn-import [^\r\n]*\n"
    rb"# source sha256 [0-9a-f]{64}\n"
    rb"# record sha256 [0-9a-f]{64}\n"
    rb"# body   sha256 [0-9a-f]{64}\n"
)
COOKIE = re.compile(rb"coding[:=]")

#: Syntax nodes of functions. Fewer statements are allowed in modules and classes.
NODES = (
    *(ast.Module, ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.Expr),
    *(ast.Assign, ast.AnnAssign, ast.Return, ast.Pass, ast.If, ast.For, ast.While),
    *(
        ast.Break,
        ast.Raise,
        ast.Attribute,
        ast.BinOp,
        ast.BoolOp,
        ast.Call,
        ast.Compare,
    ),
    *(ast.Constant, ast.Dict, ast.GeneratorExp, ast.IfExp, ast.List, ast.Name),
    *(
        ast.Slice,
        ast.Starred,
        ast.Subscript,
        ast.Tuple,
        ast.UnaryOp,
        ast.alias,
        ast.arg,
    ),
    *(ast.arguments, ast.comprehension, ast.keyword, ast.expr_context),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
)
TOP = (ast.Expr, ast.Import, ast.ImportFrom, ast.Assign, ast.ClassDef, ast.FunctionDef)
IN_CLASSES = (ast.Expr, ast.FunctionDef, ast.AnnAssign, ast.Assign)
#: The class attributes that may be assigned.
RECORD_NAMES, RECORD_PREFIX = "record_names", "record_prefix"
WEIGHTS = "WEIGHTS"
SEGMENT = re.compile(r"[\w.-]*(\{\d+\})?[\w.-]*", re.ASCII)
IMPORTS = frozenset(
    {("", "math"), ("", "burn"), ("pathlib", "Path"), ("typing", "NamedTuple")}
    | {("base64", "b64decode"), ("burn", "Tensor"), ("burn", "nn"), ("burn", "ops")}
)
CONSTANTS = (str, int, float, bool, type(None), type(...))
#: Names that may be read without being defined in the module.
READABLE = frozenset(
    {"Tensor", "Path", "NamedTuple", "super", "range", "float"}
    | {"str", "tuple", "int", "bool", "list", "len", "dict", "zip", "max", "min"}
    | {"NotImplementedError", "b64decode"}
)
#: Names that no definition in a module may shadow.
TAKEN = RESERVED | frozenset(dir(builtins))
BASES = frozenset({"nn.Module", "nn.Sequential", "NamedTuple"})
#: Attributes of values: computing attributes of tensors, and a parameter's value.
METHODS = frozenset(
    {"cast", "dtype", "expand", "flatten", "item", "max", "mean", "mT", "min", "ndim"}
    | {"permute", "reshape", "shape", "size", "squeeze", "sum", "tolist", "transpose"}
    | {"unsqueeze", "value", "append", "detach"}
)
#: Calls that are allowed literally, though their parts are not.
PHRASES = frozenset(
    {"super().__init__", "super().__call__", "Path(__file__).with_name"}
)
WORD = re.compile(r"[\w.]*", re.ASCII)
#: The decorator of ``__call__``, and the syntax of input types.
CHECK = "nn.check_inputs"
INPUT = re.compile(r"\w+\[[\w\[\], |.?()*/+-]*\]( \| None)?", re.ASCII)
#: Text of messages about missing code.
PROSE = re.compile(r"[\w ,:]*", re.ASCII)
#: Functions to which every string is data, to look up, match or return.
TEXTS = frozenset(
    {"ops.dict_vectorize", "ops.lookup", "ops.regex_full_match", "ops.string_normalize"}
    | {"ops.string_split", "ops.tokenize", "ops.zip_map"}
)
#: Where a text of many strings may be split.
SEPARATOR = re.compile(r"[,|;/]")
#: Any string, for functions to which it is data.
ANY_TEXT = re.compile(r"(?s).*")
#: The call that refuses to run on an older runtime.
REQUIRE = "burn.require_version"
#: Allowed strings in the first argument of a call.
STRINGS = {
    "b64decode": re.compile(r"[A-Za-z0-9+/=\n]*"),
    "float": re.compile("nan"),
    "ops.array": ANY_TEXT,  # a tensor of strings
    "ops.einsum": re.compile(r"[A-Za-z.,> -]*"),
    "Path(__file__).with_name": WORD,
    REQUIRE: WORD,
}


@dataclass(frozen=True, eq=False)
class Rules:
    """The constructs that a module for one library may contain beside ``NODES``.

    ``public`` returns the readable names of each module. ``verbatim`` are
    definitions that may be copied unchanged, by name. ``texts`` are functions to
    which every string is data; ``strings`` limits the first argument of calls.
    ``called`` are functions whose result may be unused, and ``attribute`` matches
    allowed attribute names of modules.
    """

    imports: frozenset[tuple[str, str]]
    public: Callable[[], Mapping[str, frozenset[str]]]
    methods: frozenset[str]
    phrases: frozenset[str]
    strings: Mapping[str, re.Pattern[str]]
    texts: frozenset[str] = frozenset()
    readable: frozenset[str] = READABLE
    call: str = "__call__"
    attribute: re.Pattern[str] = re.compile(r"[^_].*")
    called: frozenset[str] = frozenset()
    verbatim: Callable[[], Mapping[str, str]] = dict


@cache
def public() -> dict[str, frozenset[str]]:
    """Return the public names of each imported module."""
    import burn
    from burn import dtypes, lazy, nn, ops

    allowed = {
        "burn": {n for n in burn.__all__ if hasattr(dtypes, n)}
        | {"Backend", "Tensor"}
        | {REQUIRE.removeprefix("burn.")},
        "math": {"inf", "nan", "pi", "tau", "log", "sqrt", "prod", "ceil"},
    }
    for name, module in (("ops", ops), ("nn", nn)):
        members = inspect.getmembers(module, callable)
        allowed[name] = {
            n
            for n, m in members
            if not isinstance(m, ModuleType) and m.__module__ != lazy.__name__
        }
    return {name: frozenset(names) for name, names in allowed.items()}


BURN_RULES = Rules(
    *(IMPORTS, public, METHODS, PHRASES, STRINGS, TEXTS), called=frozenset({REQUIRE})
)
