"""Validation of generated source, before it is written or executed.

Every string of a model enters source through ``names``. This check is a second line of
defence against injected strings and unexpected expressions: the final bytes may contain
only the constructs in the tables. It is independent of the model.
"""

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain

from burn_import.codegen.gate.allowed import (
    ANY_TEXT,
    BASES,
    BURN_RULES,
    CHECK,
    CONSTANTS,
    COOKIE,
    HEADER,
    IN_CLASSES,
    INPUT,
    METHODS,
    NODES,
    PROSE,
    SEGMENT,
    SEPARATOR,
    TAKEN,
    TOP,
    WORD,
    Rules,
)
from burn_import.codegen.gate.member_names import member_attributes, root
from burn_import.codegen.gate.statements import (
    assigns_class_attribute,
    elements,
    embedded_records,
    is_split_text,
    record_name_strings,
    sets_state,
    text_of,
)
from burn_import.tracing.identifiers import MEMBERS

#: Exceptions that may be raised.
_UNWRITTEN = "NotImplementedError"
#: The check for each type of node in a class.
_HANDLERS: dict[type[ast.AST], str] = {
    kind: f"on_{kind.__name__.lower()}" for kind in NODES
}
_UNPRINTABLE = re.compile(rb"[^ -~]")
_BINDERS = (ast.ClassDef, ast.arg, ast.Name)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)


class UnsafeSource(RuntimeError):  # noqa: N818  a defect of ours, not of the model
    """Generated source has a construct that is not allowed; names it and the line."""

    def __init__(self, line: int, construct: str) -> None:
        super().__init__(f"generated source, line {line}: {construct}")
        self.line = line
        self.construct = construct


def check(source: bytes, rules: Rules = BURN_RULES) -> None:
    """Check that a whole module, including its header, has only allowed constructs.

    Raises:
        UnsafeSource: it has others.
    """
    header = HEADER.match(source)
    if header is None or COOKIE.search(header[0]):
        raise UnsafeSource(1, "expected the four lines of the header")
    _check_bytes(header[0])
    try:
        check_body(source[header.end() :], rules)
    except UnsafeSource as error:
        line = error.line + header[0].count(b"\n")
        raise UnsafeSource(line, error.construct) from None


@lru_cache(maxsize=2)  # called before the module is executed, and before it is written
def check_body(source: bytes, rules: Rules = BURN_RULES) -> None:
    """Check that the text of a module has only allowed constructs.

    Raises:
        UnsafeSource: it has others.
    """
    _check_bytes(source)
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line_number = getattr(error, "lineno", None) or 1
        raise UnsafeSource(line_number, f"{type(error).__name__}: {error}") from error
    copied = _verbatim_definitions(tree, rules)
    tree.body = [node for node in tree.body if node not in copied]
    _Gate(list(ast.walk(tree)), rules, {node.name for node in copied}).run()


def _verbatim_definitions(
    tree: ast.Module, rules: Rules
) -> list[ast.FunctionDef | ast.ClassDef]:
    """Return the definitions of a module that are among those of ``rules``."""
    sources = rules.verbatim()
    return [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and node.name in sources
        and ast.dump(node) == _dumped(sources[node.name])
    ]


@lru_cache(maxsize=256)
def _dumped(source: str) -> str:
    return ast.dump(ast.parse(source).body[0])


def _check_bytes(source: bytes) -> None:
    for number, line in enumerate(source.split(b"\n"), 1):
        if _UNPRINTABLE.search(line):
            raise UnsafeSource(number, "a byte that is not printable ASCII")


class _Gate:
    def __init__(
        self, nodes: list[ast.AST], rules: Rules, copied: Collection[str]
    ) -> None:
        """``copied`` are names of definitions that need no check."""
        self.nodes = nodes
        self.rules = rules
        inside = [list(ast.walk(n)) for n in nodes if isinstance(n, ast.FunctionDef)]
        binders = (node for node in nodes if isinstance(node, _BINDERS))
        self.bound_names = rules.readable.union(copied, *map(_bound_names, binders))
        self.bound_names |= set(_functions(nodes[:1], inside))
        self.imported = {n.asname or n.name for n in nodes if isinstance(n, ast.alias)}
        #: Strings, names, targets and unpacked lists in allowed positions, by identity.
        self.placed = {id(target) for target in embedded_records(nodes)}
        self.members = member_attributes(inside)

    def run(self) -> None:
        for node in self.nodes:
            self.note_allowed(node)
        for node in self.nodes:
            allowed = isinstance(node, NODES)
            find = getattr(self, _HANDLERS.get(type(node), ""), None)
            problem = find(node) if allowed and find else "" if allowed else "not known"
            if problem:
                construct = f"{type(node).__name__}, {problem}"
                raise UnsafeSource(getattr(node, "lineno", 1), construct)

    def note_allowed(self, node: ast.AST) -> None:
        """Record the strings and names that ``node`` allows as operands."""
        if isinstance(node, _DOCUMENTED):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                self.placed.add(id(first.value))
        elif isinstance(node, ast.Attribute):
            self.placed.add(id(node.value))  # ops, nn: only as a prefix
        elif isinstance(node, ast.Dict):
            self.strings(node.keys, WORD)
        elif isinstance(node, ast.Assign):
            self.strings(record_name_strings(node), SEGMENT)
        elif isinstance(node, ast.Subscript):
            self.strings([node.slice], WORD)
        elif isinstance(node, ast.keyword):
            self.strings([node.value], WORD)
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            self.strings(node.exc.args, PROSE)
        elif isinstance(node, ast.Call):
            self.note_call(node)

    def note_call(self, node: ast.Call) -> None:
        text = text_of(node.func)
        if isinstance(node.func, ast.Attribute) and is_split_text(node.func):
            self.strings(node.args, SEPARATOR)
        if text in self.rules.strings:
            self.strings(node.args[:1], self.rules.strings[text])
        if text in self.rules.texts:
            arguments = [*node.args, *(k.value for k in node.keywords)]
            self.strings(arguments, ANY_TEXT)
        if text == CHECK:
            self.strings([k.value for k in node.keywords], INPUT)
        if text == "Path" and [text_of(arg) for arg in node.args] == ["__file__"]:
            self.placed.add(id(node.args[0]))

    def strings(
        self, values: Iterable[ast.expr | None], pattern: re.Pattern[str]
    ) -> None:
        for value in values:
            for node in elements(value):
                if isinstance(node.value, str) and pattern.fullmatch(node.value):
                    self.placed.add(id(node))

    def on_module(self, node: ast.Module) -> str:
        refused = [s for s in node.body if not isinstance(s, TOP)]
        return f"with a {type(refused[0]).__name__}" if refused else ""

    def on_classdef(self, node: ast.ClassDef) -> str:
        if node.keywords or node.decorator_list:
            return f"{node.name} with a keyword or decorator"
        if [text_of(base) in BASES for base in node.bases] != [True]:
            return f"{node.name} with other bases"
        inside = all(
            isinstance(s, IN_CLASSES)
            and (not isinstance(s, ast.Assign) or assigns_class_attribute(s))
            for s in node.body
        )
        return "" if inside else f"{node.name} with other statements"

    def on_functiondef(self, node: ast.FunctionDef) -> str:
        special = node.name in ("__init__", self.rules.call)
        decorators = [text_of(d) for d in node.decorator_list]
        fine = decorators in ([], ["classmethod"]) or (
            node.name == "__call__" and len(decorators) == 1 and _is_check(node)
        )
        plain = special or not node.name.startswith("_")
        return "" if fine and plain else f"{node.name}"

    def on_import(self, node: ast.Import | ast.ImportFrom) -> str:
        origin = getattr(node, "module", "") or ""
        imports = self.rules.imports
        wrong = [a for a in node.names if _imported(origin, a) not in imports]
        return f"of {wrong[0].name!r}" if wrong else ""

    on_importfrom = on_import

    def on_expr(self, node: ast.Expr) -> str:
        documented = id(node.value) in self.placed
        call = node.value
        is_check = isinstance(call, ast.Call) and (
            text_of(call.func) in ("super().__init__", *self.rules.called)
            or isinstance(call.func, ast.Attribute)
            and (call.func.attr == "append" or sets_state(call.func))
        )
        return "" if documented or is_check else "an unused value"

    def on_constant(self, node: ast.Constant) -> str:
        if type(node.value) not in CONSTANTS:
            return f"of type {type(node.value).__name__}"
        stray = isinstance(node.value, str) and id(node) not in self.placed
        return "a string in no place for strings" if stray else ""

    def on_name(self, node: ast.Name) -> str:
        modules = self.rules.public().keys()
        if isinstance(node.ctx, ast.Store) or node.id in self.bound_names:
            return ""
        imported = node.id in modules and node.id in self.imported
        fine = id(node) in self.placed and (imported or node.id == "__file__")
        return "" if fine else f"{node.id!r}, which nothing binds"

    def on_attribute(self, node: ast.Attribute) -> str:
        if text_of(node) in self.rules.phrases:
            return ""
        is_member = root(node) == "self" or id(node) in self.members
        if isinstance(node.ctx, ast.Store) and not is_member:
            fine = id(node) in self.placed
            return "" if fine else f"an assignment to {node.attr!r}"
        public = self.rules.public()
        if isinstance(node.value, ast.Name) and node.value.id in public:
            allowed = node.attr in public[node.value.id]
        elif is_member:
            hidden = node.attr in MEMBERS - METHODS
            # PyTorch's tensors have methods called as those of modules: self.zero.to
            of_member = isinstance(node.value, ast.Attribute)
            allowed = of_member and node.attr in self.rules.methods
            allowed |= not hidden and bool(self.rules.attribute.fullmatch(node.attr))
        else:
            allowed = node.attr in self.rules.methods or is_split_text(node)
        return "" if allowed else f"{node.attr!r}"

    def on_call(self, node: ast.Call) -> str:
        function = node.func
        fine = isinstance(function, ast.Attribute) or root(function)
        return "" if fine else "of the result of an expression"

    def on_raise(self, node: ast.Raise) -> str:
        call = node.exc
        named = isinstance(call, ast.Call) and text_of(call.func) == _UNWRITTEN
        return "" if named and node.cause is None else "of something else"

    def on_list(self, node: ast.List) -> str:
        """Record the lists that are unpacked in this one, whose checks follow."""
        unpacked = (one for one in node.elts if isinstance(one, ast.Starred))
        names = (id(one) for one in unpacked if isinstance(one.value, ast.Name))
        self.placed.update(names)
        return ""

    def on_starred(self, node: ast.Starred) -> str:
        if isinstance(node.value, ast.GeneratorExp) or id(node) in self.placed:
            return ""
        return "of something else than modules made in a row or a list in a list"

    def on_keyword(self, node: ast.keyword) -> str:
        return "" if node.arg else "**"


def _imported(origin: str, name: ast.alias) -> tuple[str, str]:
    """Return module and name of an import, with its alias if it has one."""
    suffix = f" as {name.asname}" if name.asname else ""
    return origin, f"{name.name}{suffix}"


def _is_check(function: ast.FunctionDef) -> bool:
    """Return whether the first decorator is a valid ``nn.check_inputs``."""
    call = function.decorator_list[0]
    if not isinstance(call, ast.Call) or text_of(call.func) != CHECK or call.args:
        return False
    values = [keyword.value for keyword in call.keywords]
    return all(isinstance(v, ast.Constant) and isinstance(v.value, str) for v in values)


def _functions(
    modules: Iterable[ast.AST], inside: Iterable[list[ast.AST]]
) -> Iterator[str]:
    """Yield the names of a module's functions and of nested functions.

    ``inside`` has all nodes of each function, beginning with its own.

    Raises:
        UnsafeSource: a name is reserved.
    """
    groups: list[Sequence[ast.AST]] = [function[1:] for function in inside]
    groups += [node.body for node in modules if isinstance(node, ast.Module)]
    for inner in chain.from_iterable(groups):
        if isinstance(inner, ast.FunctionDef):
            if inner.name in TAKEN or inner.name.startswith("_"):
                raise UnsafeSource(inner.lineno, f"a function {inner.name!r}")
            yield inner.name


def _bound_names(node: ast.AST) -> Iterator[str]:
    """Yield the names that ``node`` binds.

    Raises:
        UnsafeSource: a name is reserved.
    """
    name = ""
    if isinstance(node, ast.ClassDef):
        name = node.name
    elif isinstance(node, ast.arg):
        name = node.arg
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        name = node.id
    if name in ("cls", "self", "WEIGHTS", "_", ""):
        yield from filter(None, [name])
    elif name in TAKEN or name.startswith("_"):
        raise UnsafeSource(getattr(node, "lineno", 1), f"an assignment to {name!r}")
    else:
        yield name
