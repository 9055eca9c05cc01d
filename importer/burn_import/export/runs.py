"""Runs of an exported model on its example, and on other sizes of named dimensions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from burn.backend.arrays import ArrayBackend
from burn.defaults import default_device
from burn.nn import InputError
from burn.plan.pytree import mapped
from burn.tensor import Tensor, innermost, tensor
from burn_import.export.errors import ExportError
from burn_import.export.example import ExampleRun
from burn_import.export.program import Recording, Sizes, record
from burn_import.export.recorder import ExportRecorder, paths_of
from burn_import.export.thresholds import sizes_beyond

#: Composites that are written as one node, since their parts have no ONNX operators.
WHOLE = frozenset(
    {"affine_grid", "compress", "grid_sample", "hardmax", "instance_norm", "lp_pool"}
    | {"lrn", "one_hot", "roi_align"}
)
#: Factors and terms of the sizes that are tried in place of the example's.
CHANGES = ((2, 0), (3, 0), (1, 1), (1, 2), (0.5, 0))
Dynamic = Mapping[str, Mapping[int, str]]


class FixedSizeError(ExportError):
    """The model runs with no other size of a dimension."""


class Runs:
    """Recorded runs of an example; ``axes`` has the named dimensions by (input, axis).

    Dimensions that only vary together get one name, which ``notes`` tells.
    """

    def __init__(
        self, example: ExampleRun, dynamic: Dynamic, *, specialize: bool
    ) -> None:
        self.example, self.specialize = example, specialize
        self.tensors = example.tensors
        self.axes = named_axes(self.tensors, example.names, dynamic)
        self.notes: list[str] = []

    @property
    def base(self) -> dict[str, int]:
        """Return the sizes of the named dimensions in the example."""
        shapes = [item.shape for item in self.tensors]
        return {
            name: shapes[number][axis] for (number, axis), name in self.axes.items()
        }

    def run(
        self, sizes: Sizes, change: Callable[[Tensor], Tensor] | None = None
    ) -> Recording:
        """Return a run of the example in other sizes, with changed tensors."""
        model, order = self.example.model, iter(range(len(self.tensors)))
        recorder = ExportRecorder(
            *(_device(self.tensors), paths_of(model), WHOLE),
            symbolic=bool(self.axes),
            specialize=self.specialize,
        )

        def resized(leaf: Any) -> Any:
            if type(leaf) is not Tensor:
                return leaf
            leaf = _resize(leaf, next(order), self.axes, sizes)
            return leaf if change is None else change(leaf)

        example = (list(self.example.args), dict(self.example.named))
        args, by_name = mapped(resized, example)
        return record(model, tuple(args), by_name, recorder, sizes)

    def with_all_sizes(self) -> list[Recording]:
        """Return a run of the example, one per dimension, and one with all changed."""
        base = self.base
        recordings = [self.with_given_sizes()]
        for name in base:
            try:
                recordings.append(self.with_other_sizes([name]))
            except FixedSizeError:
                if not self._join(name):
                    raise
                return self.with_all_sizes()
        if base:
            recordings.append(self.with_other_sizes(list(base), skip=1))
            recordings += self.beyond_thresholds()
        return recordings

    def with_given_sizes(self) -> Recording:
        """Return a run of the example as it is.

        Raises:
            ExportError: the model refuses its sizes, which may be drawn at random.
        """
        try:
            return self.run(self.base)
        except ValueError as error:
            if not self.base or isinstance(error, ExportError | InputError):
                raise
            raise ExportError(
                f"the model does not run with the sizes {self.base}: {error}; pass "
                "others with --inputs, and --fixed if it runs with no others than those"
            ) from error

    def beyond_thresholds(self) -> Iterator[Recording]:
        """Yield runs with sizes at which ``max`` and ``min`` choose otherwise.

        Sizes that the model refuses are left out.
        """
        for size in sizes_beyond(self.example.model):
            with suppress(ValueError, TypeError, IndexError):
                yield self.run(dict.fromkeys(self.base, size))

    def with_other_sizes(self, names: Sequence[str], skip: int = 0) -> Recording:
        """Return a run with other sizes of ``names``, the first that succeeds.

        Raises:
            FixedSizeError: none does.
        """
        base, problems, tried = self.base, [], 0
        for times, more in CHANGES:
            changed = {
                name: max(int(size * times) + more * (1 + i), 1)
                for i, (name, size) in enumerate(base.items())
            }
            sizes = {**base, **{name: changed[name] for name in names}}
            tried += 1
            if tried <= skip or any(sizes[name] == base[name] for name in names):
                continue
            try:
                return self.run(sizes)
            except (ValueError, TypeError, IndexError) as error:
                if isinstance(error, ExportError):
                    raise
                problems.append(f"{sizes}: {error}")
        shown = f"{list(names)}: {problems[0]}"
        raise FixedSizeError(f"the model runs with no other size of {shown}")

    def _join(self, name: str) -> bool:
        """Give dimensions that vary together with ``name`` its name, if there are any.

        Of those with the same size in the example, as few as possible are joined.
        """
        base = self.base
        group = [other for other in base if base[other] == base[name]]
        if len(group) == 1 or not self._vary(group):
            return False
        for other in [other for other in group if other != name]:
            fewer = [member for member in group if member != other]
            if len(fewer) > 1 and self._vary(fewer):
                group = fewer
        self.axes = {
            axis: group[0] if extent in group else extent
            for axis, extent in self.axes.items()
        }
        self.notes.append(
            f"{', '.join(group)} vary together: they are the dimension {group[0]}"
        )
        return True

    def _vary(self, names: Sequence[str]) -> bool:
        """Return whether the model runs with another size of all ``names``."""
        try:
            self.with_other_sizes(names)
        except FixedSizeError:
            return False
        return True


def filled_like(leaf: Tensor) -> Tensor:
    """Return a tensor of the same type, filled with the first element of ``leaf``."""
    array = innermost(leaf).numpy()
    return tensor(np.full_like(array, array.flat[0])) if array.size else leaf


def named_axes(
    tensors: Sequence[Tensor], names: Sequence[str], dynamic: Dynamic
) -> dict[tuple[int, int], str]:
    """Return the named dimensions by (input, axis).

    Raises:
        TypeError: axes have no names, as in PyTorch's ``{"x": [0]}``.
        ValueError: an input or axis does not exist, or a dimension has two sizes.
    """
    mappings = (
        [dynamic, *dynamic.values()] if isinstance(dynamic, Mapping) else [dynamic]
    )
    if not all(isinstance(each, Mapping) for each in mappings):
        raise TypeError(f"expected dynamic={{'x': {{0: 'batch'}}}}, got {dynamic!r}")
    axes: dict[tuple[int, int], str] = {}
    sizes: dict[str, int] = {}
    for name, extents in dynamic.items():
        if name not in names:
            raise ValueError(f"expected an input among {list(names)}, got {name!r}")
        number = list(names).index(name)
        for axis, extent in extents.items():
            shape = tensors[number].shape
            if not -len(shape) <= axis < len(shape) or not extent.isidentifier():
                raise ValueError(
                    f"{name}: expected an axis and a name, got {axis}: {extent!r}"
                )
            size = shape[axis]
            if sizes.setdefault(extent, size) != size:
                raise ValueError(
                    f"{extent} is {sizes[extent]} and {size} in the example"
                )
            axes[number, axis % len(shape)] = extent
    return axes


def _resize(leaf: Tensor, number: int, axes: Mapping[Any, str], sizes: Sizes) -> Tensor:
    """Return ``leaf`` repeated or cut along its named axes."""
    array = innermost(leaf).numpy()
    for (position, axis), name in axes.items():
        if position == number and array.shape[axis] != sizes[name]:
            index = np.arange(sizes[name]) % max(array.shape[axis], 1)
            array = np.take(array, index, axis)
    return leaf if array.shape == leaf.shape else tensor(array)


def _device(tensors: Sequence[Tensor]) -> ArrayBackend:
    for item in tensors:
        backend = innermost(item).backend
        if isinstance(backend, ArrayBackend) and backend.level > 0:
            return backend
    device: ArrayBackend = default_device()
    return device
