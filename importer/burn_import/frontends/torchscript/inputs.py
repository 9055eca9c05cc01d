"""Types of a program's inputs, which its code does not contain.

``torch.jit.trace`` saves its example arguments: dtypes, and the extents of one call.
Extents that may vary are found by interpreting the program with other extents: an
extent is symbolic if the program allows more than twice its value, or multiples of a
divisor of it. ``--shape`` overrides this, and gives the shapes that the archive lacks.
Inputs without an example are float32, unless the program only works with integers or
bools.
"""

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

from burn.dtypes import DType
from burn_import.frontends.checkpoints.pickle_values import Value
from burn_import.frontends.checkpoints.tensors import Tensor
from burn_import.frontends.torch_export.builder import BOOL, FLOAT32, FLOAT64, INT64
from burn_import.options import Extents
from burn_import.provenance.axis_names import AXES
from burn_ir import UnsupportedModel
from burn_ir.dim import Dim, symbol
from burn_ir.errors import Problem
from burn_ir.types import Type

#: An axis, its extent in the traced call, and the rank of the tensor.
Key: TypeAlias = tuple[int, int, int]

_MOST_INPUTS = 1000
#: The most equal extents whose groups are all tried.
_MOST_JOINED = 4


@dataclass(frozen=True)
class NumberInput:
    """An argument of a script that is a number: a scalar input of this dtype."""

    dtype: DType


class Inputs:
    """The arguments of ``forward``: examples of a trace, and user-given shapes.

    The last ``defaults`` parameters are optional. Others that are numbers are inputs.

    Raises:
        UnsupportedModel: a shape is unknown; names the option that gives it.
    """

    def __init__(
        self,
        parameters: Sequence[ast.arg],
        defaults: int,
        traced: Value,
        shapes: Mapping[str, Extents],
    ) -> None:
        examples = dict(zip((p.arg for p in parameters), traced or (), strict=False))
        needed = parameters[: len(parameters) - defaults]
        examples = {**_numbers(needed), **examples}
        names = {*examples, *shapes}
        if missing := [p for p in needed if p.arg not in names]:
            raise UnsupportedModel([_missing_shape(p) for p in missing])
        self.names = [p.arg for p in parameters if p.arg in names]
        self.examples = examples
        self.shapes = shapes
        #: The user-given extents, by axis and extent of the trace.
        self.decided: dict[tuple[int, int], Dim] = {}
        #: The keys of all examples.
        self.keys: set[Key] = set()
        #: The divisors of which extents are multiples, if not 1.
        self.units: dict[Key, int] = {}
        #: The dtypes of inputs without example.
        self.dtypes: dict[str, DType] = {}
        self.count = 0
        self.types({})

    def types(self, extents: Mapping[Key, Dim]) -> dict[str, Any]:
        """Return arguments by name: types of tensors, or other example values.

        ``extents`` replace the extents of the trace.
        """
        self.count = 0
        return {
            name: self._argument_type(name, self.examples.get(name), extents)
            for name in self.names
        }

    def _argument_type(
        self, name: str, example: Value, extents: Mapping[Key, Dim]
    ) -> Any:
        self.count += 1
        if self.count > _MOST_INPUTS:
            raise UnsupportedModel(f"more than {_MOST_INPUTS} inputs")
        if isinstance(example, list | tuple):
            items = enumerate(example)
            inner = [
                self._argument_type(f"{name}_{n}", item, extents) for n, item in items
            ]
            return type(example)(inner)
        if isinstance(example, dict):
            pairs = example.items()
            return {
                k: self._argument_type(f"{name}_{k}", item, extents)
                for k, item in pairs
            }
        if name in self.shapes:
            return self._given_type(name, example)
        if not isinstance(example, Tensor):
            return example
        keys = _axes_of(example)
        self.keys.update(keys)
        dims = (self.decided.get(k[:2], extents.get(k, k[1])) for k in keys)
        return Type(example.dtype, tuple(dims))

    def _given_type(self, name: str, example: Value) -> Type:
        """Return the type of an input with a user-given shape."""
        dims = tuple(symbol(d) if isinstance(d, str) else d for d in self.shapes[name])
        if not isinstance(example, Tensor):
            return Type(self.dtypes.setdefault(name, FLOAT32), dims)
        if len(dims) == len(example.shape):
            self.decided.update(zip(enumerate(example.shape), dims, strict=True))
        return Type(example.dtype, dims)

    def open(self, allows: Callable[[Mapping[Key, Dim]], bool]) -> list[list[Key]]:
        """Return the extents that may vary, where ``allows`` tests an assignment.

        Extents of one list are equal: the program does not allow them to vary
        separately.
        """
        groups: list[list[Key]] = []
        fixed: dict[int, list[Key]] = {}
        for (axis, size), keys in self._candidates().items():
            if _varies(keys, allows):
                groups.append(keys)
                continue
            for key in keys:
                if axis and len(keys) > 1 and _varies([key], allows):
                    groups.append([key])
                else:
                    fixed.setdefault(size, []).append(key)
        joined = (_joined(keys, allows) for keys in fixed.values() if len(keys) > 1)
        return groups + [keys for keys in joined if keys]

    def divided(
        self,
        groups: Iterable[Sequence[Key]],
        allows: Callable[[Mapping[Key, Dim]], bool],
    ) -> list[list[Key]]:
        """Return further extents that vary by multiples of a divisor.

        Programs with views of windows or patches have them. The divisors are recorded
        in ``units``.
        """
        opened = {key for group in groups for key in group}
        # Vary the others as well: otherwise an extent could be merged with the batch.
        odd = {key: 2 * key[1] + 1 for key in opened}
        divisible = []
        for (axis, _), keys in self._candidates().items():
            rest = [key for key in keys if key not in opened]
            if axis and rest:
                divisible += self._multiples(rest, odd, allows)
        return divisible

    def _multiples(
        self,
        group: list[Key],
        others: Mapping[Key, Dim],
        allows: Callable[[Mapping[Key, Dim]], bool],
    ) -> list[list[Key]]:
        """Return the group if its extents vary by multiples, else those that do alone.

        Extents of several ranks may be equal by chance, and one of them fixed.
        """
        unit = _unit(group, others, allows)
        if unit:
            self.units.update(dict.fromkeys(group, unit))
            return [group]
        alone = [[key] for key in group] if len(group) > 1 else []
        return [one for key in alone for one in self._multiples(key, others, allows)]

    def _candidates(self) -> dict[tuple[int, int], list[Key]]:
        """Return the keys that may vary, grouped by axis and extent.

        A group has one key for each rank of tensors: the frames of a video and the
        words of its caption may be equally many by chance.
        """
        groups: dict[tuple[int, int], list[Key]] = {}
        for key in sorted(self.keys):
            axis, size, _ = key
            if (axis, size) not in self.decided and not (axis and size == 1):
                groups.setdefault((axis, size), []).append(key)
        return groups

    def named(self, groups: Iterable[Sequence[Key]]) -> dict[Key, Dim]:
        """Return a symbol for each group of extents.

        It is named after the axis of the highest rank: the batch is all that a tensor
        of timesteps has.
        """
        dims: dict[Key, Dim] = {}
        decided = {str(dim) for dim in self.decided.values()}
        for group in groups:
            axis, _, rank = max(group, key=lambda key: key[2])
            names = AXES.get(rank, ())
            name = names[axis] if axis < len(names) else f"extent{axis}"
            unit = self.units.get(group[0], 1)
            name = name if unit == 1 else f"{name}_unit"
            unique, number = name, 1
            while unique in decided:
                number += 1
                unique = f"{name}{number}"
            decided.add(unique)
            dims.update(dict.fromkeys(group, unit * symbol(unique)))
        return dims


def _axes_of(example: Tensor) -> list[Key]:
    """Return the key of each axis of a tensor."""
    rank = len(example.shape)
    return [(axis, size, rank) for axis, size in enumerate(example.shape)]


def _varies(group: Sequence[Key], allows: Callable[[Mapping[Key, Dim]], bool]) -> bool:
    """Return whether a program allows other extents.

    A larger odd extent reveals extents that are merged with a fixed one, halved, or
    split in patches; twice the extent would not. If a table of positions is too short
    for it, an odd extent of about half is tried.
    """
    if allows({key: 2 * key[1] + 1 for key in group}):
        return True
    smaller = {key: key[1] // 2 | 1 for key in group}
    is_cut = all(1 < extent < key[1] for key, extent in smaller.items())
    return is_cut and allows(smaller)


def _joined(
    keys: Sequence[Key], allows: Callable[[Mapping[Key, Dim]], bool]
) -> list[Key]:
    """Return most of the equal extents that may vary together; [] if none may.

    Tokens and their positions are equally many, and features of texts by chance.
    """
    for count in range(len(keys), 1, -1):
        for group in combinations(keys, count):
            if _varies(group, allows):
                return list(group)
        if len(keys) > _MOST_JOINED:
            break
    return []


def _unit(
    group: Sequence[Key],
    others: Mapping[Key, Dim],
    allows: Callable[[Mapping[Key, Dim]], bool],
) -> int:
    """Return the smallest divisor of an extent whose multiples are allowed, or 0.

    If only multiples of the extent itself are allowed, it is merged with another one.
    """
    size = group[0][1]

    def fits(extent: int) -> bool:
        return allows({**others, **dict.fromkeys(group, extent)})

    if not fits(3 * size):
        return 0
    parts = (unit for unit in range(2, size // 2 + 1) if size % unit == 0)
    return next((unit for unit in parts if fits(2 * size + unit)), 0)


def _missing_shape(parameter: ast.arg) -> Problem:
    name, kind = parameter.arg, parameter.annotation
    if isinstance(kind, ast.Subscript):  # Optional[Tensor], but not List[Tensor]
        kind = kind.slice if _is_named(kind.value, "Optional") else kind.value
    if kind is not None and not _is_named(kind, "Tensor"):
        return Problem(f"input {name!r}: expected a tensor, or a trace with an example")
    return Problem(
        f"input {name!r}: the archive has no recorded shape",
        hint=f"pass its shape, such as --shape {name}=batch,3,224,224",
    )


def _numbers(parameters: Sequence[ast.arg]) -> dict[str, NumberInput]:
    """Return the parameters that are annotated as numbers."""
    kinds = ((p.arg, p.annotation) for p in parameters)
    return {
        name: NumberInput(_NUMBERS[kind.id])
        for name, kind in kinds
        if isinstance(kind, ast.Name) and kind.id in _NUMBERS
    }


_NUMBERS: Mapping[str, DType] = {"int": INT64, "float": FLOAT64, "bool": BOOL}


def _is_named(kind: ast.expr, name: str) -> bool:
    return isinstance(kind, ast.Name) and kind.id == name
