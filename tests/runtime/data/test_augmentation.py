"""Images that a transform of albumentations changes, with the loader's seeds."""

import warnings
from typing import Any

import numpy as np
import pytest

from burn import data

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 3)).astype(np.uint8)
MASKS = IMAGES[..., 0] // 128


class Roll:
    """A transform that moves all targets by a random number of rows."""

    def set_random_seed(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def __call__(self, **targets: Any) -> dict[str, Any]:
        rows = self.generator.integers(1, 8)
        return {name: np.roll(array, rows, 0) for name, array in targets.items()}


def transform() -> Any:
    """Return a transform of albumentations that changes most images."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for a newer version of itself
        albumentations: Any = pytest.importorskip("albumentations")
        flip = albumentations.HorizontalFlip(p=0.5)
        crop = albumentations.RandomCrop(6, 6, p=1.0)
        return albumentations.Compose([flip, crop])


def epochs(dataset: Any, workers: int = 0) -> list[Any]:
    """Return the images of two epochs of a loader."""
    with data.Loader(dataset, batch=4, shuffle=5, workers=workers) as loader:
        return [[batch[0].numpy() for batch in loader] for _ in range(2)]


@pytest.mark.parametrize("make", [Roll, transform])
def test_changes_follow_from_seed_epoch_and_index(make: Any) -> None:
    dataset = data.Augmented(data.Memory(IMAGES, np.arange(6)), make())
    first, second = epochs(dataset), epochs(dataset)
    for one, other in zip(first, second, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)
    assert any(not np.array_equal(a, b) for a, b in zip(*first, strict=True))


def test_workers_change_as_one_process_does() -> None:
    dataset = data.Augmented(data.Memory(IMAGES, np.arange(6)), Roll())
    for one, other in zip(epochs(dataset), epochs(dataset, workers=2), strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("make", [Roll, transform])
def test_masks_change_with_their_images(make: Any) -> None:
    items = data.Memory(IMAGES, MASKS, np.arange(6))
    dataset = data.Augmented(items, make(), ("image", "mask"))
    for number in range(6):
        image, mask, label = dataset[number]
        np.testing.assert_array_equal(image[..., 0] // 128, mask)
        assert label == number


def test_images_alone_and_mistakes() -> None:
    image = data.Augmented(list(IMAGES), Roll())[0]
    assert sorted(image.ravel()) == sorted(IMAGES[0].ravel())
    with pytest.raises(TypeError, match=r"expected an albumentations\.Compose, got"):
        data.Augmented(list(IMAGES), lambda **targets: targets)  # type: ignore[arg-type]
    dataset = data.Augmented([(IMAGES[0],)], Roll(), ("image", "mask"))
    with pytest.raises(ValueError, match="expected an item of 2 elements or more"):
        dataset[0]
