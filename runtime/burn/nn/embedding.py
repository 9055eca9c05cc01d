"""Vectors looked up by number."""

from burn import ops
from burn.box import Parameter
from burn.nn import init
from burn.nn.module import Module
from burn.tensor import Tensor


class Embedding(Module):
    """A table of ``num_embeddings`` vectors of ``embedding_dim``, drawn from N(0, 1).

    Called with integers of any shape it returns their vectors along a new last axis.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.weight = Parameter(init.normal((num_embeddings, embedding_dim)))

    def __call__(self, indices: Tensor) -> Tensor:
        return ops.take(self.weight, indices, 0)

    def describe(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"
