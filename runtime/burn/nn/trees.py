"""Decision tree ensembles."""

from burn import dtypes, ops
from burn.box import Buffer
from burn.nn import init
from burn.nn.module import Module
from burn.tensor import Tensor


def _integers(
    shape: tuple[int, ...], value: int = 0, dtype: dtypes.DType = dtypes.int64
) -> Buffer:
    return Buffer(init.constant(shape, value, dtype))


class TreeEnsemble(Module):
    """Scores [samples, targets] of [samples, features] by :func:`ops.tree_ensemble`.

    The numbers are those of all trees together; ``leaf_width`` is that of the targets
    that one leaf adds to. Until arrays are loaded every tree is one leaf of nothing.
    """

    def __init__(
        self,
        *,
        trees: int,
        branches: int,
        leaves: int,
        targets: int = 1,
        leaf_width: int = 1,
        aggregate: str = "sum",
        missing: bool = False,
        base_values: bool = False,
    ) -> None:
        super().__init__()
        self.targets, self.aggregate = targets, aggregate
        self.roots = _integers((trees,), -1)
        self.features = _integers((branches,))
        self.modes = _integers((branches,), dtype=dtypes.uint8)
        self.splits = Buffer(init.constant((branches,), 0.0))
        self.links = _integers((branches, 2))
        self.leaf_targets = _integers((leaves, leaf_width))
        self.leaf_weights = Buffer(init.constant((leaves, leaf_width), 0.0))
        self.missing = _integers((branches,), dtype=dtypes.bool_) if missing else None
        self.base_values = (
            Buffer(init.constant((targets,), 0.0)) if base_values else None
        )

    def __call__(self, x: Tensor) -> Tensor:
        return ops.tree_ensemble(
            x,
            self.roots,
            self.features,
            self.modes,
            self.splits,
            self.links,
            self.leaf_targets,
            self.leaf_weights,
            self.missing,
            self.base_values,
            targets=self.targets,
            aggregate=self.aggregate,
        )

    def describe(self) -> str:
        return (
            f"trees={self.roots.shape[0]}, branches={self.features.shape[0]}, "
            f"leaves={self.leaf_weights.shape[0]}, targets={self.targets}"
        )
