"""Interface by which functions of the code call operators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from burn_import.frontends.torchscript.node_writer import NodeWriter
from burn_import.frontends.torchscript.values import PyValue, TensorRef
from burn_ir.graph_builder import Origin


@dataclass(frozen=True)
class AtenCall:
    """A call of ``torch.name``: its ATen target and its arguments by name."""

    name: str
    target: str
    args: Mapping[str, Any]
    origin: Origin


class OperatorCalls(ABC):
    """Operators as nodes; ``writer`` receives the nodes."""

    writer: NodeWriter

    @abstractmethod
    def call(
        self,
        name: str,
        args: list[PyValue],
        kwargs: dict[str, PyValue],
        origin: Origin,
        count: int | None = None,
    ) -> PyValue:
        """Return the result of ``torch.name(*args, **kwargs)``.

        ``count`` is the number of names that the result is unpacked to.

        Raises:
            UnsupportedModel: the operator is not supported.
            InvalidModel: the arguments do not fit.
        """

    @abstractmethod
    def operator(
        self,
        name: str,
        args: list[PyValue],
        kwargs: dict[str, PyValue],
        origin: Origin,
        count: int | None = None,
    ) -> PyValue:
        """Return the result of an ATen operator, a tensor or a list of them."""

    @abstractmethod
    def leaves(self, obj: PyValue) -> Iterator[PyValue]:
        """Yield the leaves of nested lists, tuples and dicts."""

    @abstractmethod
    def number(self, target: str, args: Sequence[PyValue], origin: Origin) -> PyValue:
        """Return the result of a function of numbers, as a number if it is known."""

    @abstractmethod
    def size(self, origin: Origin, x: TensorRef, dim: int | None = None) -> PyValue:
        """Return an extent of a tensor, or all of them."""

    @abstractmethod
    def as_number(self, x: PyValue, origin: Origin) -> PyValue:
        """Return a tensor of one element as a number; numbers unchanged."""

    @abstractmethod
    def tensor(self, x: PyValue, origin: Origin, dtype: Any = None) -> TensorRef:
        """Return a number, or a list of numbers, as a tensor."""
