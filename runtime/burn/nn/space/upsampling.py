"""Layers that resample space."""

from typing import Any, Literal

from burn import ops
from burn.nn.described_module import DescribedModule
from burn.tensor import Tensor

Factors = float | tuple[float, ...]
Sizes = int | tuple[int, ...]
Mode = Literal["nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic"]
#: The number of spatial axes that a mode is for, where it is for one only.
RANKS = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}
#: The options of ``ops.resize`` for modes without interpolation.
NEAREST = {
    "nearest": ("asymmetric", "floor"),
    "nearest-exact": ("half_pixel", "round_prefer_ceil"),
}


class Upsample(DescribedModule):
    """[N, C, ...] resampled to the spatial extents ``size``, or by ``scale_factor``.

    ``align_corners`` is for modes that interpolate.

    Raises:
        ValueError: both or neither of the two, an unknown mode, or a mode that does
            not interpolate with ``align_corners``.
    """

    def __init__(
        self,
        size: Sizes | None = None,
        scale_factor: Factors | None = None,
        mode: Mode = "nearest",
        align_corners: bool | None = None,
    ) -> None:
        super().__init__()
        if (size is None) == (scale_factor is None):
            raise ValueError(
                f"expected size or scale_factor, got {size} and {scale_factor}"
            )
        if mode not in (*NEAREST, *RANKS):
            raise ValueError(f"expected one of {[*NEAREST, *RANKS]}, got {mode!r}")
        if mode in NEAREST and align_corners is not None:
            raise ValueError(f"expected no align_corners with mode {mode!r}")
        self.size, self.scale_factor = size, scale_factor
        self.mode, self.align_corners = mode, align_corners

    def __call__(self, x: Tensor) -> Tensor:
        rank = x.ndim - 2
        if rank < 1 or rank != RANKS.get(self.mode, rank):
            expected = RANKS.get(self.mode, 1) + 2
            message = f"mode {self.mode!r}: expected rank {expected}, got "
            raise ValueError(message + f"{list(x.shape)}")
        axes = tuple(range(2, x.ndim))
        scales, sizes = self._per_axis(self.scale_factor, rank), None
        if scales is None:
            sizes = self._per_axis(self.size, rank)
        return ops.resize(x, scales, sizes, axes=axes, **self._options())

    def _per_axis(self, value: Any, rank: int) -> tuple[Any, ...] | None:
        if value is None or not isinstance(value, tuple | list):
            return None if value is None else (value,) * rank
        if len(value) != rank:
            raise ValueError(f"expected {rank} extents or factors, got {value}")
        return tuple(value)

    def _options(self) -> dict[str, Any]:
        if self.mode in NEAREST:
            coordinates, rounding = NEAREST[self.mode]
            return {
                "mode": "nearest",
                "coordinate_transformation_mode": coordinates,
                "nearest_mode": rounding,
            }
        is_aligned = bool(self.align_corners)
        return {
            "mode": "cubic" if self.mode == "bicubic" else "linear",
            "coordinate_transformation_mode": (
                "pytorch_align_corners" if is_aligned else "half_pixel"
            ),
        }


class UpsamplingNearest2d(Upsample):
    """[N, C, H, W] with elements repeated."""

    def __init__(
        self, size: Sizes | None = None, scale_factor: Factors | None = None
    ) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """[N, C, H, W] interpolated between aligned corners."""

    def __init__(
        self, size: Sizes | None = None, scale_factor: Factors | None = None
    ) -> None:
        super().__init__(size, scale_factor, "bilinear", True)
