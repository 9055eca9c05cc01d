"""Constructor calls among a module's classes, and parameters passed through them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from burn_import.codegen import syntax
from burn_import.codegen.class_text import ClassText
from burn_import.provenance.path_segments import Path
from burn_import.tracing.unparse import unparse_expression

#: Calls with more positional arguments get keywords, after the leading ones.
MOST_POSITIONAL, LEADING = 3, 2
#: Maximum width of a call with keywords.
LONGEST = 76
#: Maximum number of module paths that are followed per class.
MOST_MODULES = 64


@dataclass
class Parameter:
    """A parameter of a constructor; the source of its type and default, if any."""

    name: str
    kind: str
    default: str = ""

    def __str__(self) -> str:
        default = f" = {self.default}" if self.default else ""
        return f", {self.name}: {self.kind}{default}"


@dataclass
class Constructor:
    """The ``__init__`` of a class as syntax trees."""

    text: ClassText
    parameters: list[Parameter]
    statements: list[ast.stmt]

    @classmethod
    def of(cls, text: ClassText) -> Constructor:
        """Return the constructor of a class from its source."""
        parameters = syntax.parameters_of(text.constructor).items()
        statements = list(map(syntax.statement_of, text.fields))
        return cls(text, [Parameter(*one) for one in parameters], statements)

    def add(self, parameter: Parameter) -> None:
        """Append a parameter that no call passes by position."""
        flags = sum(one.kind == "bool" for one in self.parameters)
        self.parameters.insert(len(self.parameters) - flags, parameter)

    def position(self, name: str) -> int:
        """Return the index of a parameter, or -1."""
        names = [parameter.name for parameter in self.parameters]
        return names.index(name) if name in names else -1

    def written(self) -> ClassText:
        """Return the class with the source of this constructor."""
        signature = "".join(map(str, self.parameters))
        lines = list(map(_keep_equivalent, self.text.fields, self.statements))
        return replace(self.text, constructor=signature, fields=lines)


def _keep_equivalent(line: str, statement: ast.stmt) -> str:
    """Return ``line`` if it is equivalent to ``statement``, else new source."""
    is_same = ast.dump(syntax.statement_of(line)) == ast.dump(statement)
    return line if is_same else unparse_expression(statement)


@dataclass(frozen=True)
class Site:
    """A call in a constructor: its class, and the attribute path of its result.

    ``path`` is empty if it depends on the iteration of a comprehension.
    """

    owner: str
    call: ast.Call
    path: Path


@dataclass(frozen=True)
class Slot:
    """A positional argument of a call in the constructor of ``owner``."""

    owner: str
    call: ast.Call
    position: int

    @property
    def value(self) -> ast.expr:
        """The expression of the argument."""
        return self.call.args[self.position]


class ConstructorCalls:
    """The constructors of all classes of a module, the root's first."""

    def __init__(self, texts: Sequence[ClassText]) -> None:
        self.root = texts[0].name
        self.constructors = {text.name: Constructor.of(text) for text in texts}
        self.sites: dict[str, list[Site]] = {}
        for name in self.constructors:
            for site in self.calls(name):
                self.sites.setdefault(syntax.called_name(site.call), []).append(site)

    def calls(self, owner: str) -> Iterator[Site]:
        """Yield the calls in the constructor of a class."""
        for statement in self.constructors[owner].statements:
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value:
                name = syntax.assigned_field(statement)[0]
                yield from _calls_in(statement.value, owner, (name,) if name else ())

    def chains(self, name: str) -> list[list[Site]]:
        """Return the chain of calls from the root to each module of a class.

        Empty if a comprehension makes one of them, or if there are many.
        """
        if name == self.root:
            return [[]]
        chains: list[list[Site]] = []
        for site in self.sites.get(name, []):
            outer = self.chains(site.owner) if site.path else []
            chains += [[*chain, site] for chain in outer]
            if not outer or len(chains) > MOST_MODULES:
                return []
        return chains

    def chain(self, name: str) -> list[Site] | None:
        """Return the only chain of calls from the root to a class.

        None if there are several, or if a comprehension makes it.
        """
        chains = self.chains(name)
        return chains[0] if len(chains) == 1 else None

    def chain_to(self, path: Path) -> list[Site]:
        """Return the calls from the root to the one that makes the module at ``path``.

        Empty if the path leads through a comprehension.
        """
        chain: list[Site] = []
        owner = self.root
        while path and owner in self.constructors:
            sites = [
                site
                for site in self.calls(owner)
                if site.path and site.path == path[: len(site.path)]
                if syntax.called_name(site.call) not in syntax.LISTS
            ]
            if not sites:
                return []
            chain.append(max(sites, key=lambda site: len(site.path)))
            path = path[len(chain[-1].path) :]
            owner = syntax.called_name(chain[-1].call)
        return [] if path else chain

    def literal(self, slot: Slot, chain: Sequence[Site]) -> tuple[Slot, int] | None:
        """Return the number in a slot, with the outermost slot that passes it.

        ``chain`` has the calls from the root to the one that makes the slot's
        owner. None if the number is computed, or if other modules use it as well.
        """
        callers = list(chain)
        while isinstance(slot.value, ast.Name) and callers:
            position = self.constructors[slot.owner].position(slot.value.id)
            site = callers.pop()
            if not 0 <= position < len(site.call.args):
                return None
            slot = Slot(site.owner, site.call, position)
        number = slot.value.value if isinstance(slot.value, ast.Constant) else None
        is_alone = self.chain(slot.owner) is not None
        return (slot, number) if type(number) is int and is_alone else None

    def expose(self, name: str, slots: Sequence[Slot]) -> bool:
        """Make the number in all of ``slots`` a parameter of the root with a default.

        Returns whether that was possible; if not, nothing has changed.
        """
        owners = {slot.owner for slot in slots}
        chains = [self.chain(owner) for owner in owners]
        sites = {id(s.call): s for chain in chains for s in chain or ()}
        called = {syntax.called_name(site.call) for site in sites.values()}
        clash = any(self.constructors[n].position(name) >= 0 for n in called)
        if None in chains or clash or self.constructors[self.root].position(name) >= 0:
            return False
        default = ast.unparse(slots[0].value)
        for slot in slots:
            slot.call.args[slot.position] = ast.Name(name)
        for site in sites.values():
            site.call.args.append(ast.Name(name))
            inner = self.constructors[syntax.called_name(site.call)]
            inner.add(Parameter(name, "int"))
        self.constructors[self.root].add(Parameter(name, "int", default))
        return True

    def name_arguments(self) -> None:
        """Pass numbers after the first by keyword where lines are long enough.

        All calls of a class have one form: if one would be too long, all stay
        positional.
        """
        for name in self.sites.keys() & self.constructors.keys():
            calls = [site.call for site in self.sites[name]]
            parameters = self.constructors[name].parameters
            named = [_with_keywords(call, parameters) for call in calls]
            if all(len(ast.unparse(call)) <= LONGEST for call in named):
                for call, other in zip(calls, named, strict=True):
                    call.args, call.keywords = other.args, other.keywords

    def written(self) -> list[ClassText]:
        """Return the classes with their constructors."""
        return [constructor.written() for constructor in self.constructors.values()]


def _with_keywords(call: ast.Call, parameters: Sequence[Parameter]) -> ast.Call:
    """Return a call with keyword numbers, if it has several arguments."""
    numbers = any(isinstance(value, ast.Constant) for value in call.args)
    if len(call.args) <= MOST_POSITIONAL or not numbers:
        return call
    pairs = zip(parameters, call.args, strict=False)
    later = [ast.keyword(parameter.name, value) for parameter, value in pairs]
    keywords = [*later[LEADING:], *call.keywords]
    return ast.Call(call.func, call.args[:LEADING], keywords)


def _calls_in(node: ast.expr, owner: str, path: Path) -> Iterator[Site]:
    """Yield the calls in ``node``, the constructor of the module at ``path``."""
    if isinstance(node, ast.Call):
        yield Site(owner, node, path)
        if syntax.called_name(node) in syntax.LISTS:
            yield from _children(node, owner, path)
            return
    elif isinstance(node, ast.IfExp):
        yield from _calls_in(node.body, owner, path)
        return
    for inner in ast.iter_child_nodes(node):
        for each in ast.walk(inner):
            if isinstance(each, ast.Call):
                yield Site(owner, each, ())


def _children(call: ast.Call, owner: str, path: Path) -> Iterator[Site]:
    """Yield the calls that construct the children of a list of modules."""
    is_counted = bool(path)
    for number, item in enumerate(syntax.list_items(call)):
        is_counted = is_counted and syntax.repetition(item) == (item, None)
        inner = (*path, str(number)) if is_counted else ()
        yield from _calls_in(item, owner, inner)
