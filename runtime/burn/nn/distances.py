"""Distances and similarities of vectors."""

from burn import ops
from burn.nn.described_module import DescribedModule
from burn.tensor import Tensor


class CosineSimilarity(DescribedModule):
    """The cosine of the angle between vectors along an axis.

    The length of each vector counts as ``eps`` at least.
    """

    def __init__(self, axis: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.axis, self.eps = axis, eps

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        dot = ops.sum(x * y, self.axis)
        return dot / (self._length(x) * self._length(y))

    def _length(self, x: Tensor) -> Tensor:
        # The clip is inside the root, whose derivative is infinite at 0.
        return ops.sqrt(ops.clip(ops.sum(x * x, self.axis), self.eps**2))


class PairwiseDistance(DescribedModule):
    """The ``p``-norm of ``x - y + eps`` along the last axis."""

    def __init__(
        self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
    ) -> None:
        super().__init__()
        if p <= 0.0:
            raise ValueError(f"expected p > 0, got {p}")
        self.p, self.eps, self.keepdim = p, eps, keepdim

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        difference = ops.abs(x - y + self.eps)
        total = ops.sum(difference**self.p, -1, keepdims=self.keepdim)
        return total ** (1 / self.p)
