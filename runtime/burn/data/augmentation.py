"""Random augmentation of images by a transform of albumentations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from burn.data.dataset import Dataset, Source
from burn.data.epoch import random

#: One more than the largest seed that albumentations takes.
SEEDS = 2**32


class Transform(Protocol):
    """The interface of ``albumentations.Compose`` that this module uses."""

    def set_random_seed(self, seed: int) -> None: ...
    def __call__(self, **targets: Any) -> dict[str, Any]: ...


class Augmented(Source[Any]):
    """The items of ``dataset``, changed by an ``albumentations.Compose``.

    ``targets`` are the names that the transform has for the first elements of an item,
    as ``("image", "mask")``; other elements stay. An item that is no tuple is the
    first target. The random numbers of the transform follow from :func:`random`: they
    depend on the loader's seed, the epoch and the index of the item.

    Raises:
        TypeError: ``transform`` has no ``set_random_seed``: it is no ``Compose``.
        ValueError: an item has fewer elements than there are targets.
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        transform: Transform,
        targets: Sequence[str] = ("image",),
    ) -> None:
        if not hasattr(transform, "set_random_seed"):
            raise TypeError(
                "Augmented: expected an albumentations.Compose, got "
                f"{type(transform).__name__}"
            )
        self.dataset, self.transform = dataset, transform
        self.targets = tuple(targets)

    def __len__(self) -> int:
        return len(self.dataset)

    def item(self, index: int) -> Any:
        item = self.dataset[index]
        elements = item if isinstance(item, tuple) else (item,)
        count = len(self.targets)
        if len(elements) < count:
            raise ValueError(
                f"Augmented: expected an item of {count} elements or more for "
                f"{', '.join(self.targets)}, got {len(elements)}"
            )
        self.transform.set_random_seed(int(random().integers(SEEDS)))
        named = dict(zip(self.targets, elements, strict=False))
        results = self.transform(**named)
        changed = tuple(results[name] for name in self.targets)
        return (*changed, *elements[count:]) if isinstance(item, tuple) else changed[0]
