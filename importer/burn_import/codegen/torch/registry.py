"""The registry of forms: the PyTorch source for each primitive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from burn import Tensor
from burn.primitive import Primitive
from burn_import.codegen.torch.constructor_arguments import has_parameter_numbers
from burn_import.tracing.expression import Expression
from burn_import.tracing.identifiers import literal
from burn_import.tracing.trace import Apply
from burn_ir.errors import Problem, UnsupportedModel

#: A form's arguments are the renderer, a ``TorchRenderer``, and the call.
Form = Callable[[Any, Apply], Expression]

#: The form of each primitive, by name.
FORMS: dict[str, Form] = {}


def form(*primitives: Any) -> Callable[[Form], Form]:
    """Register the decorated function as the form of ``primitives``.

    It returns the expression of a call of one of them.
    """

    def declare(function: Form) -> Form:
        for primitive in primitives:
            assert isinstance(primitive, Primitive), primitive
            if primitive.name in FORMS:
                raise ValueError(f"primitive {primitive.name!r} has two forms")
            FORMS[primitive.name] = function
        return function

    return declare


def unless(value: Any, default: Any) -> str | None:
    """Return the source of an option, or None if it equals PyTorch's default.

    Constructor arguments are always emitted, since they differ between instances.
    """
    if isinstance(value, Tensor):
        raise TypeError("expected an option, got a tensor")
    is_omitted = value == default and not has_parameter_numbers(value)
    return None if is_omitted else literal(value)


def flag(value: Any) -> str | None:
    """Return the source of an option that is off by default, or None if it is off."""
    return unless(value, False)


def located_at(call: Apply, problem: Problem) -> Problem:
    """Return ``problem`` with the node of a call, if it has no location."""
    if problem.node:
        return problem
    node, operator, opset = call.origin
    return replace(problem, node=node, operator=operator, opset=opset)


def refusal(call: Apply, message: str) -> UnsupportedModel:
    """Return the error that a call cannot be emitted for PyTorch."""
    node, operator, opset = call.origin
    hint = "the target burn has it"
    return UnsupportedModel([Problem(message, node, operator, opset, hint)])
