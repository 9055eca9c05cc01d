"""Embedding layers."""

from burn import ops
from burn.box import Parameter
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
        self.weight = Parameter(init.normal(shape, zero_row=padding_idx))

    def __call__(self, indices: Tensor) -> Tensor:
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
