"""Interpreter of statements: assignments, static branches and loops, returns."""

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from burn.record.errors import shown
from burn_import.frontends.torch_export.builder import Value
from burn_import.frontends.torchscript.archive import Archive, TooMuch
from burn_import.frontends.torchscript.context_managers import (
    WithoutGradients,
    check_context,
)
from burn_import.frontends.torchscript.control_flow.control import (
    returns_early,
    write_if,
    write_return,
)
from burn_import.frontends.torchscript.control_flow.loops import write_loop
from burn_import.frontends.torchscript.expressions import Expressions, Frame
from burn_import.frontends.torchscript.source_code import Code, Function, Rest
from burn_import.frontends.torchscript.values import (
    UNKNOWN,
    Module,
    PyValue,
    Returned,
    TensorRef,
    Without,
)
from burn_ir import InvalidModel, ModelError, UnsupportedModel
from burn_ir.error_context import FAULTS, error_text
from burn_ir.errors import Problem

#: Largest call depth; modules of real models nest a third as deep.
_DEEPEST = 60
#: The cost of a call in steps.
_CALL = 10
#: The most problems that are listed.
_MOST_PROBLEMS = 100
#: Longer loops are not unrolled if they can be written as loops.
_MOST_ROUNDS = 100


class Statements(Expressions):
    """Interpreter of functions. ``problems`` are those found, by kind of error."""

    def __init__(
        self, archive: Archive, code: Code, varying: frozenset[str] = frozenset()
    ) -> None:
        super().__init__(archive, code, varying)
        self.problems: dict[type[ModelError], dict[Problem, None]] = {}
        self.depth = 0
        #: The number of interpreted statements, and that before the first problem.
        self.count = 0
        self.sound: int | None = None

    def enter(
        self,
        function: Function,
        module: Module,
        args: list[PyValue],
        kwargs: dict[str, PyValue],
    ) -> PyValue:
        """Return the result of a function of the archive."""
        if self.depth >= _DEEPEST:
            raise TooMuch(f"calls nested deeper than {_DEEPEST}")
        self.budget.step(_CALL)
        frame = Frame(function, module, rest=Rest())
        self.bind(function, frame, args, kwargs)
        self.depth += 1
        try:
            result = self.run(function.node.body, frame)
        finally:
            self.depth -= 1
        return result.value if isinstance(result, Returned) else None

    def bind(
        self,
        function: Function,
        frame: Frame,
        args: list[PyValue],
        kwargs: dict[str, PyValue],
    ) -> None:
        """Bind the parameters of a function to arguments.

        Raises:
            InvalidModel: the arguments do not fit the parameters.
        """
        names = [arg.arg for arg in function.node.args.args]
        defaults = function.node.args.defaults
        first = len(names) - len(defaults)
        bound = dict(zip(names, args, strict=False)) | kwargs
        if len(args) > len(names) or set(bound) - set(names):
            raise InvalidModel(f"expected arguments {names}, got {len(args)}")
        for index, name in enumerate(names):
            if name not in bound:
                if index < first:
                    raise InvalidModel(f"expected an argument {shown(name)}")
                bound[name] = self.evaluate(defaults[index - first], frame)
        frame.names.update(bound)

    def run(self, body: Sequence[ast.stmt], frame: Frame) -> Returned | None:
        """Return the result of a block, None if it does not return."""
        outer = frame.rest
        try:
            for index, node in enumerate(body, 1):
                self.budget.step()
                self.count += 1
                if outer is not None and isinstance(node, ast.If):
                    frame.rest = Rest(body, index, outer)
                else:
                    frame.rest = None
                result = self.statement(node, frame)
                if result is not None:
                    return result
        finally:
            frame.rest = outer
        return None

    def statement(self, node: ast.stmt, frame: Frame) -> Returned | None:
        """Interpret a statement; errors in it are recorded."""
        follow = _STATEMENTS.get(type(node))
        try:
            if follow is None:
                kind = type(node).__name__
                raise UnsupportedModel(f"a statement of kind {kind} is not supported")
            result: Returned | None = follow(self, node, frame)
            return result
        except TooMuch:
            raise
        except ModelError as error:
            for problem in error.problems:
                kind_of = type(error)
                self.note(kind_of, _without_node(problem), node, frame)
        except FAULTS as error:  # operands of kinds that no compiler writes
            self.note(InvalidModel, error_text(error), node, frame)
        self.forget(node, frame)
        return Returned(UNKNOWN) if isinstance(node, ast.Return) else None

    def forget(self, node: ast.stmt, frame: Frame) -> None:
        """Mark names and lists that a failed statement may change as unknown."""
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                value = frame.names.get(part.id)
                if isinstance(part.ctx, ast.Store):
                    frame.names[part.id] = UNKNOWN
                elif isinstance(value, list):
                    value[:] = [UNKNOWN]

    def note(
        self, kind: type[ModelError], message: str, node: ast.stmt, frame: Frame
    ) -> None:
        """Record a problem with its line in the code."""
        kind = kind if kind is UnsupportedModel else InvalidModel
        where = f"code/{frame.file}, line {node.lineno}"
        if self.sound is None:
            self.sound = self.count
        problems = self.problems.setdefault(kind, {})
        problems[Problem(f"{where}: {message}")] = None
        if sum(map(len, self.problems.values())) >= _MOST_PROBLEMS:
            raise TooMuch([*self.problems[kind]])

    def expression(self, node: ast.Expr, frame: Frame) -> None:
        """Evaluate an expression whose result is not used."""
        self.evaluate(node.value, frame)

    def returned(self, node: ast.Return, frame: Frame) -> Returned:
        """Return the value that ends the function."""
        if node.value is None:
            return Returned(None)
        return Returned(self.evaluate(node.value, frame))

    def assignment(self, node: ast.Assign, frame: Frame) -> None:
        """Interpret an assignment to one or several names."""
        for target in node.targets:
            name = _hint(target)
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Call):
                value = self.called(node.value, frame, name, len(target.elts))
            else:
                value = self.evaluate(node.value, frame, name)
            self.assign(target, value, frame)

    def annotated(self, node: ast.AnnAssign, frame: Frame) -> None:
        """Interpret an assignment with a type annotation."""
        if node.value is not None:
            self.assign(node.target, self.evaluate(node.value, frame), frame)

    def assign(self, target: ast.expr, value: PyValue, frame: Frame) -> None:
        """Assign a value to a target."""
        if isinstance(target, ast.Name):
            frame.names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            self.unpack(target, value, frame)
        elif isinstance(target, ast.Attribute):
            owner = self.evaluate(target.value, frame)
            if not isinstance(owner, Module):
                raise UnsupportedModel(
                    "expected a module in an assignment to an attribute"
                )
            self.modules.set(owner, target.attr, value)
        elif isinstance(target, ast.Subscript):
            owner = self.evaluate(target.value, frame)
            if not isinstance(owner, list | dict):
                raise UnsupportedModel(
                    "expected a list or dict in an assignment to an item"
                )
            owner[self.evaluate(target.slice, frame)] = value
        else:
            raise UnsupportedModel(
                "expected a name, item or attribute as target of an assignment"
            )

    def unpack(
        self, target: ast.Tuple | ast.List, value: PyValue, frame: Frame
    ) -> None:
        """Assign the items of a value to several targets."""
        count = len(target.elts)
        if value is UNKNOWN:
            value = [UNKNOWN] * count
        if not isinstance(value, list | tuple):
            raise UnsupportedModel("expected several values, got one")
        if len(value) != count:
            raise InvalidModel(f"expected {count} values, got {len(value)}")
        for item, part in zip(target.elts, value, strict=True):
            self.assign(item, part, frame)

    def condition(self, node: ast.expr, frame: Frame) -> PyValue:
        """Evaluate a condition; a tensor becomes a bool that is known at run time."""
        test = self.evaluate(node, frame)
        if isinstance(test, TensorRef):
            return self.convert(bool, test, frame.origin("condition"))
        return test

    def branch(self, node: ast.If, frame: Frame) -> Returned | None:
        """Interpret one block; both if the condition is unknown before run time."""
        test = self.condition(node.test, frame)
        if test is UNKNOWN:
            self.forget(node, frame)
            return None
        if isinstance(test, Value) and returns_early(node, frame):
            return Returned(write_return(self, node, frame, test))
        if isinstance(test, Value):
            return write_if(self, node, frame, test)
        if isinstance(test, Without):
            raise UnsupportedModel("a condition has no value")
        return self.run(node.body if test else node.orelse, frame)

    def loop(self, node: ast.For, frame: Frame) -> Returned | None:
        """Unroll ``for i in range(n)`` if n is known; else write a loop."""
        is_range = (
            isinstance(node.iter, ast.Call)
            and isinstance(node.iter.func, ast.Name)
            and node.iter.func.id == "range"
        )
        if not is_range or not isinstance(node.target, ast.Name):
            raise UnsupportedModel("expected a loop over range()")
        assert isinstance(node.iter, ast.Call)
        ends = [self.evaluate(arg, frame) for arg in node.iter.args]
        if any(end is UNKNOWN for end in ends):
            self.forget(node, frame)
            return None
        if any(isinstance(end, Value) for end in ends):
            if len(ends) > 1:
                raise UnsupportedModel(
                    "the first index of a loop is known only at run time"
                )
            write_loop(self, node, frame, ends[0])
            return None
        rounds = range(*ends)
        if len(rounds) > _MOST_ROUNDS and len(ends) == 1:
            write_loop(self, node, frame, ends[0])
            return None
        for number in rounds:
            frame.names[node.target.id] = number
            result = self.run(node.body, frame)
            if result is not None:
                return result
        return None

    def repeat(self, node: ast.While, frame: Frame) -> Returned | None:
        """Unroll ``while`` as long as its condition is known."""
        while True:
            test = self.condition(node.test, frame)
            if test is UNKNOWN:
                self.forget(node, frame)
                return None
            if isinstance(test, Value):
                write_loop(self, node, frame, None)
                return None
            if isinstance(test, Without):
                raise UnsupportedModel("the condition of a loop is unknown")
            if not test:
                return None
            result = self.run(node.body, frame)
            if result is not None:
                return result

    def within(self, node: ast.With, frame: Frame) -> Returned | None:
        """Interpret the body of a ``with`` statement."""
        entered = [self.evaluate(item.context_expr, frame) for item in node.items]
        for context in entered:
            check_context(context)
        block = WithoutGradients(self)
        result = self.run(node.body, frame)
        if any(context.kind == "no_grad" for context in entered):
            block.detach(frame, None if result is None else result.value)
        return result


def _hint(target: ast.expr) -> str:
    """Return a value's name without its number: ``scores`` for ``scores2``."""
    if not isinstance(target, ast.Name) or target.id.startswith("_"):
        return ""
    return target.id.rstrip("0123456789")


def _without_node(problem: Problem) -> str:
    """Return a problem's message without the node: the line is reported instead."""
    parts = [f"{problem.operator}: " if problem.operator else "", problem.message]
    return "".join(parts)


def _nothing(machine: Statements, node: ast.stmt, frame: Frame) -> None:
    return None


_STATEMENTS: Mapping[type, Callable[[Any, Any, Frame], Returned | None]] = {
    ast.Expr: Statements.expression,
    ast.Return: Statements.returned,
    ast.Assign: Statements.assignment,
    ast.AnnAssign: Statements.annotated,
    ast.If: Statements.branch,
    ast.For: Statements.loop,
    ast.While: Statements.repeat,
    ast.With: Statements.within,
    ast.Pass: _nothing,
}
