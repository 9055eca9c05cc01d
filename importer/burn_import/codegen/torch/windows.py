"""Padding of convolutions and pools in PyTorch's form."""

from typing import Any

from burn_import.codegen.torch.registry import refusal
from burn_import.codegen.torch.renderer import TorchRenderer
from burn_import.tracing.constructor_numbers import ParameterNumber
from burn_import.tracing.expression import Expression
from burn_import.tracing.identifiers import literal
from burn_import.tracing.trace import Apply


def spatial_rank(r: TorchRenderer, call: Apply, *tensors: Any) -> int:
    """Return the number of spatial axes of tensors ``[N, C, *size]``.

    Raises:
        UnsupportedModel: the rank is unknown.
    """
    kernel = call.static.get("kernel_size")
    if isinstance(kernel, tuple):
        return len(kernel)
    for tensor in tensors:
        rank = r.rank(tensor)
        if rank is not None:
            return rank - 2
    raise refusal(call, "expected a known rank of the input")


def is_symmetric(padding: Any) -> bool:
    """Return whether padding is equal on both sides of every axis."""
    if isinstance(padding, int):
        return padding >= 0
    pairs = [(side, side) if isinstance(side, int) else side for side in padding]
    return all(_is_same(before, after) and after >= 0 for before, after in pairs)


def _is_same(first: int, second: int) -> bool:
    """Return whether two numbers are equal in all instances of a class."""
    if isinstance(first, ParameterNumber) or isinstance(second, ParameterNumber):
        return getattr(first, "text", None) == getattr(second, "text", None)
    return first == second


def symmetric(padding: Any) -> int | tuple[int, ...]:
    """Return symmetric padding as one integer, or one per axis."""
    if isinstance(padding, int):
        return padding
    sides = tuple(side if isinstance(side, int) else side[0] for side in padding)
    return sides[0] if all(_is_same(sides[0], side) for side in sides) else sides


def padding_pairs(padding: Any, rank: int) -> list[int]:
    """Return padding for ``F.pad``, from the last axis on."""
    sides = (padding,) * rank if isinstance(padding, int) else padding
    pairs = [(side, side) if isinstance(side, int) else side for side in sides]
    return [side for pair in reversed(pairs) for side in pair]


def explicit_padding(
    r: TorchRenderer, x: Expression, padding: Any, rank: int, value: str | None = None
) -> Expression:
    """Return ``F.pad(x, ...)`` for padding that layers do not support."""
    pads = literal(tuple(padding_pairs(padding, rank)))
    if value is not None and "math" in value:
        r.modules.add("math")
    return r.call("F.pad", [x, Expression(pads)], {"value": value})
