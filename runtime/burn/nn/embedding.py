"""Embedding layers."""

from typing import Literal

from burn import dtypes, ops
from burn.box import Parameter
from burn.dtypes import DType
from burn.nn import init
from burn.nn.module import Module
from burn.tensor import Tensor


class Embedding(Module):
    """A table of ``num_embeddings`` vectors of ``embedding_dim``, drawn from N(0, 1).

    Called with integers of any shape it returns their vectors along a new last axis.
    The vector ``padding_idx`` is initialized to zeros and receives no gradient;
    negative indices count from the end. With ``scale_grad_by_freq`` the gradient of a
    vector is divided by the number of its lookups.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        *,
        scale_grad_by_freq: bool = False,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ValueError(
                    f"expected padding_idx below {num_embeddings}, got {padding_idx}"
                )
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        self.scale_grad_by_freq = scale_grad_by_freq
        shape = num_embeddings, embedding_dim
        self.weight = Parameter(init.normal(shape, 1.0, dtype, padding_idx))

    def __call__(self, indices: Tensor) -> Tensor:
        if dtypes.is_float(indices.dtype):
            raise TypeError(f"expected integers as indices, got {indices.dtype}")
        if self.padding_idx is None and not self.scale_grad_by_freq:
            return ops.take(self.weight, indices, 0)
        return ops.embedding(
            self.weight,
            indices,
            padding_idx=self.padding_idx,
            scale_grad_by_freq=self.scale_grad_by_freq,
        )

    def describe(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        return f"{text}, scale_grad_by_freq=True" if self.scale_grad_by_freq else text


class EmbeddingBag(Embedding):
    """An :class:`Embedding` of bags [N, L]: the mean, sum or maximum of L vectors.

    Vectors of ``padding_idx`` do not count. With mode ``"sum"`` each vector can have a
    weight, in an array [N, L]. All bags have one length: PyTorch's ``offsets`` are not
    taken, pad the bags instead.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        mode: Literal["sum", "mean", "max"] = "mean",
        padding_idx: int | None = None,
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx)
        if mode not in ("sum", "mean", "max"):
            raise ValueError(f"expected mode sum, mean or max, got {mode!r}")
        self.mode = mode

    def __call__(
        self, indices: Tensor, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        if indices.ndim != 2:
            raise ValueError(f"expected bags [N, L], got {list(indices.shape)}")
        if per_sample_weights is not None and self.mode != "sum":
            raise ValueError(f"expected mode 'sum' with weights, got {self.mode!r}")
        vectors = super().__call__(indices)
        if per_sample_weights is not None:
            vectors = vectors * ops.unsqueeze(per_sample_weights, -1)
        if self.padding_idx is None:
            reduce = {"sum": ops.sum, "mean": ops.mean, "max": ops.max}[self.mode]
            return reduce(vectors, 1)
        return self._reduce(vectors, ops.unsqueeze(indices != self.padding_idx, -1))

    def _reduce(self, vectors: Tensor, is_counted: Tensor) -> Tensor:
        """Return the reduction of [N, L, C] over the vectors that count, 0 of none."""
        counts = ops.sum(is_counted.cast(vectors.dtype), 1)
        if self.mode == "max":
            largest = ops.max(ops.where(is_counted, vectors, float("-inf")), 1)
            return ops.where(counts > 0, largest, 0.0)
        total = ops.sum(ops.where(is_counted, vectors, 0.0), 1)
        return total / ops.clip(counts, 1.0) if self.mode == "mean" else total

    def describe(self) -> str:
        return f"{super().describe()}, mode={self.mode!r}"
