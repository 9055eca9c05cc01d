"""Roles of the inputs and outputs of a decoder model: cache, mask and positions."""

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from burn.dtypes import DType
from burn.nn.inputs import tensor_type

_INDEX = re.compile(r"\d+")
_KEY, _VALUE = re.compile(r"key|(^|_)k(_|$|\d)"), re.compile(r"value|(^|_)v(_|$|\d)")


class BindingError(TypeError):
    """The inputs or outputs of a model are not those of a decoder with a cache."""


@dataclass(frozen=True)
class CacheInput:
    """An input for past keys or values, ``[batch, heads, length, size]``."""

    name: str
    dtype: DType
    heads: int
    size: int


class MaskInput(NamedTuple):
    """The attention mask input, ``[batch, length]``."""

    name: str
    dtype: DType


@dataclass(frozen=True)
class Binding:
    """The inputs of a decoder, and the indices of the results that are its cache.

    ``results`` are in the order of ``caches``; ``logits`` is the first other result.
    """

    tokens: str
    mask: MaskInput
    positions: str | None
    caches: tuple[CacheInput, ...]

    @classmethod
    def of(cls, model: Any) -> "Binding":
        """Return the binding of a model whose ``__call__`` declares its inputs.

        Raises:
            BindingError: an input has no known role, or a role has no input.
        """
        types = getattr(type(model).__call__, "input_types", None)
        name = type(model).__name__
        if not types:
            raise BindingError(f"{name}.__call__ is not declared by nn.check_inputs")
        caches: list[CacheInput] = []
        tokens = mask = positions = None
        for label, text in types.items():
            dtype, shape = tensor_type(text)
            rank = None if shape is None else len(shape)
            if rank == 4:
                caches.append(_cache_input(name, label, dtype, shape))
            elif rank == 2 and "mask" in label:
                mask = MaskInput(label, dtype)
            elif rank == 2 and "position" in label and positions is None:
                positions = label
            elif rank == 2 and dtype.kind == "i" and tokens is None:
                tokens = label
            else:
                raise BindingError(
                    f"{name}: expected tokens, a mask, positions and past keys and "
                    f"values, got the input {label!r} of {text}"
                )
        for role, value in (
            ("tokens, int64[batch, length]", tokens),
            ("an attention mask, [batch, length]", mask),
            ("past keys and values, [batch, heads, past, size]", caches),
        ):
            if not value:
                inputs = ", ".join(f"{label}: {text}" for label, text in types.items())
                raise BindingError(f"{name}: expected an input of {role}, got {inputs}")
        assert tokens is not None and mask is not None
        return cls(tokens, mask, positions, tuple(caches))

    def split_results(self, results: Any) -> tuple[Any, list[Any]]:
        """Return the logits, and the caches in the order of the inputs.

        Raises:
            BindingError: the results do not match the binding.
        """
        if isinstance(results, dict):
            names, values = tuple(results), tuple(results.values())
        else:
            names, values = getattr(results, "_fields", ()), tuple(results)
        count = len(self.caches)
        if len(values) < count + 1:
            raise BindingError(
                f"expected logits and {count} keys and values, got {len(values)}"
            )
        order = _matching([cache.name for cache in self.caches], names[-count:])
        presents = [values[len(values) - count + number] for number in order]
        for cache, present in zip(self.caches, presents, strict=True):
            shape = present.shape
            if len(shape) != 4 or (shape[1], shape[3]) != (cache.heads, cache.size):
                raise BindingError(
                    f"{cache.name}: expected a result [batch, {cache.heads}, length, "
                    f"{cache.size}], got {list(shape)}"
                )
        return values[0], presents


def _cache_input(model: str, label: str, dtype: DType, shape: Any) -> CacheInput:
    _, heads, _, size = shape
    if not isinstance(heads, int) or not isinstance(size, int):
        raise BindingError(
            f"{model}: expected numbers of heads and of features in {label!r}, "
            f"got {list(shape)}"
        )
    return CacheInput(label, dtype, heads, size)


def _matching(inputs: list[str], outputs: tuple[str, ...]) -> list[int]:
    """Return, for each input, the index of the output with the same layer and kind.

    Outputs are matched in order if their names do not identify them.
    """
    ours, theirs = [_role(n) for n in inputs], [_role(n) for n in outputs]
    if None in ours or set(ours) != set(theirs) or len(set(ours)) != len(ours):
        return list(range(len(inputs)))
    return [theirs.index(role) for role in ours]


def _role(name: str) -> tuple[str, bool] | None:
    """Return the layer number and whether the name is a key; None if unknown."""
    numbers = _INDEX.findall(name)
    plain = name.replace("key_values", "")
    is_key, is_value = bool(_KEY.search(plain)), bool(_VALUE.search(plain))
    if len(numbers) != 1 or is_key == is_value:
        return None
    return numbers[0], is_key
