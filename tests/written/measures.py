"""Measures of one generated source: what a reviewer would count."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields

#: The longest function that is not counted.
FUNCTION_LINES = 60
#: The most calls inside of each other's arguments that are not counted, and the most
#: operations (of ``ops``) among them.
NESTED = 3
OPERATIONS = 2
#: Floats with fewer digits than that, and smaller, are explained by themselves.
DIGITS, LARGE = 4, 1e30
#: Calls that give an array other sizes.
_SHAPES = frozenset({"reshape", "expand", "tile", "broadcast_to"})
_LETTER = re.compile(r"[a-z]\d*")
_SHAPE_COMMENT = re.compile(r"\s*# .*\[[^\]]*\]")
_CONSTANT = re.compile(r"constant_?\d*")
_NUMBERED = re.compile(r"(.*?[A-Za-z])V?\d+")

Function = ast.FunctionDef


@dataclass(frozen=True)
class Measures:
    """Counts of one source, or of several together."""

    lines: int = 0
    classes: int = 0
    #: Classes that a number alone tells from another.
    twins: int = 0
    #: Names that functions assign, and those of a letter, or a letter and a number.
    locals: int = 0
    letters: int = 0
    #: Attributes called ``constant``, with or without a number.
    constants: int = 0
    #: Floats of four digits and more that nothing names.
    floats: int = 0
    #: Comments with a shape, on lines of their own.
    comments: int = 0
    #: Functions of more than ``FUNCTION_LINES`` lines.
    long: int = 0
    #: Statements with more than ``NESTED`` calls, or ``OPERATIONS`` operations, inside
    #: of each other's arguments.
    nested: int = 0
    #: Reshapes to numbers alone, which other sizes of inputs do not fit.
    sizes: int = 0
    #: Classes that only pass their arguments on to a member.
    passing: int = 0
    #: Classes of modules that nothing calls.
    holders: int = 0

    def __add__(self, other: Measures) -> Measures:
        names = [one.name for one in fields(self)]
        return Measures(*(getattr(self, n) + getattr(other, n) for n in names))


def measure(text: str) -> Measures:
    """Return the measures of the source ``text``."""
    tree = ast.parse(text)
    functions, classes = _functions(tree), _class_names(tree)
    names = [name for function in functions for name in assigned(function)]
    return Measures(
        lines=len(code_lines(text)),
        classes=len(classes),
        twins=len(twins(classes)),
        locals=len(names),
        letters=sum(_LETTER.fullmatch(name) is not None for name in names),
        constants=len(lost_attributes(tree)),
        floats=sum(len(unexplained(function)) for function in functions),
        comments=sum(bool(_SHAPE_COMMENT.match(x)) for x in text.splitlines()),
        long=sum(_length(function) > FUNCTION_LINES for function in functions),
        nested=sum(map(_is_nested, ast.walk(tree))),
        sizes=len(fixed_shapes(tree)),
        passing=len(passing(tree)),
        holders=len(holders(tree)),
    )


def code_lines(text: str) -> list[str]:
    """Return the lines that hold code: no blank ones, comments and docstrings."""
    quiet: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            first = node.body[0] if node.body else None
            if first and ast.get_docstring(node, clean=False) is not None:
                quiet.update(range(first.lineno, (first.end_lineno or 0) + 1))
    return [
        line
        for at, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.strip().startswith("#") and at not in quiet
    ]


def twins(classes: list[str]) -> list[str]:
    """Return the names of classes that a number tells from another."""
    stems = Counter(map(_stem, classes))
    return [name for name in classes if _stem(name) != name and stems[_stem(name)] > 1]


def _stem(name: str) -> str:
    numbered = _NUMBERED.fullmatch(name)
    return numbered[1] if numbered else name


def assigned(function: Function) -> list[str]:
    """Return the names that ``function`` itself assigns, each once."""
    own = function.args
    given = {a.arg for a in (*own.posonlyargs, *own.args, *own.kwonlyargs)}
    names = {
        node.id
        for node in _inside(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return sorted(names - given - {"_"})


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is in a function, without functions and comprehensions in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, Function | ast.Lambda | ast.comprehension):
            yield child
            yield from _inside(child)


def lost_attributes(tree: ast.AST) -> list[str]:
    """Return the attributes that are called ``constant``, where they are assigned."""
    return [
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and _CONSTANT.fullmatch(node.attr)
    ]


def unexplained(function: Function) -> list[float]:
    """Return the floats in ``function`` that no keyword or name explains."""
    named = {
        id(node)
        for parent in ast.walk(function)
        for node in _named(parent)
        for node in ast.walk(node)
    }
    return [
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, float)
        and id(node) not in named
        and (len(_digits(node.value)) >= DIGITS or abs(node.value) >= LARGE)
    ]


def _named(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the values that have a name: keywords, and what is assigned as it is."""
    if isinstance(node, ast.keyword) and node.arg:
        yield node.value
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
        yield node.value


def _digits(value: float) -> str:
    """Return the digits of ``value`` that count, without its power of ten."""
    mantissa = f"{abs(value)!r}".lower().partition("e")[0]
    return mantissa.replace(".", "").strip("0")


def fixed_shapes(tree: ast.AST) -> list[str]:
    """Return the calls that give an array several sizes, and leave none open."""
    return [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _SHAPES
        and _is_fixed(node)
    ]


def _is_fixed(call: ast.Call) -> bool:
    """Return whether sizes other than those of heads are numbers, and none is -1."""
    items: list[ast.expr] = []
    for argument in call.args:
        items += argument.elts if isinstance(argument, ast.Tuple) else [argument]
    numbers = [number for item in items for number in _number(item)]
    open_sizes = len(items) - len(numbers)
    large = sum(number > 1 for number in numbers)
    return -1 not in numbers and large > (2 if open_sizes > 1 else 1)


def passing(tree: ast.Module) -> list[str]:
    """Return the classes with one module that only pass their arguments on to it.

    The root, which checks its inputs, is none of them, nor is a class whose
    constructor builds a sequence of several modules from its own parameters.
    """
    return [
        one.name
        for one in _module_classes(tree)
        if (call := _method(one, "__call__")) is not None
        and not call.decorator_list
        and _is_passed_on(call)
        and not _builds_sequence(one)
    ]


def holders(tree: ast.Module) -> list[str]:
    """Return the classes of modules without computations, which nothing calls."""
    return [one.name for one in _module_classes(tree) if not _method(one, "__call__")]


def _module_classes(tree: ast.Module) -> list[ast.ClassDef]:
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return [one for one in classes if [*map(ast.unparse, one.bases)] == ["nn.Module"]]


def _method(node: ast.ClassDef, name: str) -> Function | None:
    methods = (one for one in node.body if isinstance(one, Function))
    return next((one for one in methods if one.name == name), None)


def _is_passed_on(call: Function) -> bool:
    """Return whether a method only calls a member with its own parameters."""
    body = [one for one in call.body if not _is_docstring(one)]
    value = body[0].value if isinstance(body[0], ast.Return) else None
    if len(body) != 1 or not isinstance(value, ast.Call) or value.keywords:
        return False
    given = [argument.arg for argument in call.args.args[1:]]
    is_member = re.fullmatch(r"self[.\w\[\]]+", ast.unparse(value.func)) is not None
    return is_member and [*map(ast.unparse, value.args)] == given


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _builds_sequence(node: ast.ClassDef) -> bool:
    """Return whether a constructor with parameters makes an ``nn.Sequential``."""
    init = _method(node, "__init__")
    has_parameters = init is not None and len(init.args.args) > 1
    return has_parameters and "nn.Sequential(" in ast.unparse(node)


def _number(item: ast.expr) -> list[int]:
    try:
        number = ast.literal_eval(item)
    except ValueError:
        return []
    return [number] if isinstance(number, int) else []


def _is_nested(node: ast.AST) -> bool:
    """Return whether a statement has calls nested too deeply."""
    if not isinstance(node, ast.Assign | ast.Return | ast.Expr):
        return False
    return _depth(node) > NESTED or _depth(node, "ops.") > OPERATIONS


def _depth(node: ast.AST, start: str = "") -> int:
    """Return how many calls are inside of each other's arguments at most.

    Only functions whose names begin with ``start`` count, and no constructors of
    layers: a list of modules is no computation.
    """
    if not isinstance(node, ast.Call):
        inside = (_depth(child, start) for child in ast.iter_child_nodes(node))
        return max(inside, default=0)
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    name = ast.unparse(node.func)
    own = name.startswith(start) and not name.startswith("nn.")
    deepest = max((_depth(one, start) for one in given), default=0)
    return max(_depth(node.func, start), own + deepest)


def _length(function: Function) -> int:
    return (function.end_lineno or 0) - function.lineno + 1


#: What some of the measures count, by name.
LISTED: dict[str, Callable[[ast.Module], list[str]]] = {
    "constants": lost_attributes,
    "floats": lambda tree: [
        f"{one.name}: {number!r}"
        for one in _functions(tree)
        for number in unexplained(one)
    ],
    "holders": holders,
    "passing": passing,
    "sizes": fixed_shapes,
    "twins": lambda tree: twins(_class_names(tree)),
}


def _functions(tree: ast.AST) -> list[Function]:
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def _class_names(tree: ast.AST) -> list[str]:
    return [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
