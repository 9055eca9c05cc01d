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

#: What a module may consist of. Statements of a module and of a class are fewer.
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
#: The attribute of a class that may be assigned to in its body.
RECORD_NAMES = "record_names"
SEGMENT = re.compile(r"[\w-]*(\{\d+\})?", re.ASCII)
IMPORTS = frozenset(
    {("", "math"), ("", "burn"), ("pathlib", "Path"), ("typing", "NamedTuple")}
    | {("typing", "Self"), ("burn", "Tensor"), ("burn", "nn"), ("burn", "ops")}
)
CONSTANTS = (str, int, float, bool, type(None), type(...))
#: Names that are read without being assigned in the module.
GIVEN = frozenset(
    {"Tensor", "Path", "Self", "NamedTuple", "classmethod", "super", "range", "float"}
    | {"str", "tuple", "int", "bool", "list", "len", "dict", "zip"}
    | {"NotImplementedError"}
)
#: Names that nothing in a module may mean anew.
TAKEN = RESERVED | frozenset(dir(builtins))
BASES = frozenset({"nn.Module", "nn.Sequential", "NamedTuple"})
#: Attributes of values: those of tensors that compute, and the value of a parameter.
METHODS = frozenset(
    {"cast", "dtype", "expand", "flatten", "item", "max", "mean", "mT", "min", "ndim"}
    | {"permute", "reshape", "shape", "size", "squeeze", "sum", "tolist", "transpose"}
    | {"unsqueeze", "value", "append", "detach"}
)
#: Calls that are allowed as they stand though their parts are not.
PHRASES = frozenset(
    {"super().__init__", "super().__call__", "cls().load_weights"}
    | {"Path(__file__).with_name"}
)
WORD = re.compile(r"[\w.]*", re.ASCII)
#: The decorator of ``__call__``, and how the type of an input is written.
CHECK = "nn.check_inputs"
INPUT = re.compile(r"\w+\[[\w\[\], |.?()*/+-]*\]( \| None)?", re.ASCII)
#: What a message about something to be written may be.
PROSE = re.compile(r"[\w ,:]*", re.ASCII)
#: Functions to which every string is data: they look it up, match it or return it.
TEXTS = frozenset(
    {"ops.dict_vectorize", "ops.lookup", "ops.regex_full_match", "ops.string_normalize"}
    | {"ops.string_split", "ops.tokenize", "ops.zip_map"}
)
#: Any string: data to the function that is given it.
ANY_TEXT = re.compile(r"(?s).*")
#: The call that refuses to run on an older runtime.
REQUIRE = "burn.require_version"
#: Which strings the first argument of a call may hold.
STRINGS = {
    "float": re.compile("nan"),
    "ops.array": ANY_TEXT,  # a tensor of strings
    "ops.einsum": re.compile(r"[A-Za-z.,> -]*"),
    "Path(__file__).with_name": WORD,
    REQUIRE: WORD,
}


@dataclass(frozen=True, eq=False)
class Rules:
    """What a module for one library may contain beside the syntax of ``NODES``.

    ``public`` returns the names that may be read of each module. ``verbatim`` are
    definitions that a module may have as they stand here, by name. ``texts`` are
    functions to which every string is data, ``strings`` says which strings the first
    argument of a call may be. ``called`` are functions whose result nobody needs, and
    ``attribute`` matches the names that attributes of modules may have.
    """

    imports: frozenset[tuple[str, str]]
    public: Callable[[], Mapping[str, frozenset[str]]]
    methods: frozenset[str]
    phrases: frozenset[str]
    strings: Mapping[str, re.Pattern[str]]
    texts: frozenset[str] = frozenset()
    given: frozenset[str] = GIVEN
    call: str = "__call__"
    attribute: re.Pattern[str] = re.compile(r"[^_].*")
    called: frozenset[str] = frozenset()
    verbatim: Callable[[], Mapping[str, str]] = dict


@cache
def public() -> dict[str, frozenset[str]]:
    """Return the public names of each imported module."""
    import burn
    from burn import dtypes, nn, ops

    allowed = {
        "burn": {n for n in vars(burn) if hasattr(dtypes, n)}
        | {"Backend", "Tensor"}
        | {REQUIRE.removeprefix("burn.")},
        "math": {"inf", "nan", "pi", "prod", "ceil"},
    }
    for name, module in (("ops", ops), ("nn", nn)):
        members = inspect.getmembers(module, callable)
        allowed[name] = {n for n, m in members if not isinstance(m, ModuleType)}
    return {name: frozenset(names) for name, names in allowed.items()}


BURN_RULES = Rules(
    *(IMPORTS, public, METHODS, PHRASES, STRINGS, TEXTS), called=frozenset({REQUIRE})
)
