"""Tensors: immutable arrays on a backend, with an optional tape node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.attribute_hints import add_hints
from burn.defaults import default_device
from burn.dtypes import DType, default_dtype
from burn.methods import Methods, method
from burn.numpy_interface import NumpyInterface
from burn.tensor_hints import TENSORS

if TYPE_CHECKING:
    from burn.backend.autodiff import Gradients
    from burn.backend.base import Backend


class Tensor(NumpyInterface, Methods):
    """An immutable n-dimensional array of one dtype on one backend.

    Created by :func:`burn.tensor`, :func:`burn.from_numpy` and every operation.
    """

    __slots__ = ("backend", "data", "node")

    def __init__(self, data: Any, backend: Backend, node: Any = None) -> None:
        self.data = data
        self.backend = backend
        self.node = node

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        shape: tuple[int, ...] = self.data.shape
        return shape

    @property
    def dtype(self) -> DType:
        """The element type, a NumPy dtype object."""
        dtype: DType = self.data.dtype
        return dtype

    @property
    def ndim(self) -> int:
        """The rank."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        size = 1
        for extent in self.shape:
            size *= extent
        return size

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return the elements as a read-only NumPy array; copies from a device."""
        array = self.backend.to_numpy(self.data).view()
        array.flags.writeable = False
        return array

    def item(self) -> Any:
        """Return the only element as a Python value.

        Raises:
            ValueError: the tensor does not have exactly one element.
        """
        return self.numpy().item()

    def tolist(self) -> Any:
        """Return the elements as nested Python lists."""
        return self.numpy().tolist()

    def to(self, backend: Backend) -> Tensor:
        """Return this tensor on ``backend``, without its history.

        Raises:
            TypeError: ``backend`` is not a backend, for example PyTorch's ``"cuda"``.
        """
        if self.backend.stands_for(backend):
            return self.detach()
        inner = getattr(backend, "inner", None)
        if inner is None:
            remedy = (
                "; use x.cast(dtype)" if isinstance(backend, np.dtype | type) else ""
            )
            raise TypeError(
                "expected a backend, such as burn.Cpu() or burn.Cuda(0), "
                f"got {backend!r}{remedy}"
            )
        if self.backend.stands_for(inner):
            return Tensor(self, backend)
        if (
            inner is not backend
        ):  # a tape: the inner tensor may be on that device already
            return Tensor(self.to(inner), backend)
        return Tensor(backend.from_numpy(self.backend.to_numpy(self.data)), backend)

    @method
    def detach(self) -> Tensor:
        """Return this tensor without its history."""
        return self if self.node is None else Tensor(self.data, self.backend)

    def inner(self) -> Tensor:
        """This tensor on the backend below its own, with its history there.

        ::

            loss = model(x).mean()  # on Autodiff(Autodiff(Cpu()))
            gradient = loss.backward()[model.weight]  # on Autodiff(Cpu()), as inner()
            total = loss.inner() + (gradient * gradient).sum()
            gradients = total.backward()

        Raises:
            TypeError: its backend stands on no other.
        """
        if type(self.data) is not Tensor:
            raise TypeError(f"expected a tensor on Autodiff(...), got {self.backend}")
        return self.data

    def require_grad(self) -> Tensor:
        """Return this tensor as a leaf, for which ``backward`` computes a gradient.

        On nested ``Autodiff`` backends it becomes a leaf of each tape on which it has
        no history, so that higher derivatives include it.

        Raises:
            TypeError: its backend does not track gradients.
        """
        return self.leaf(None).with_inner_leaves()

    def leaf(self, key: Any) -> Tensor:
        """Return this tensor as a leaf of the outermost tape, under ``key``."""
        return Tensor(self.data, self.backend, self.backend.leaf(key))

    def with_inner_leaves(self) -> Tensor:
        """Return this leaf, also as a leaf of inner tapes without its history."""
        data = self.data
        if type(data) is not Tensor or not data.backend.tracks_gradients:
            return self
        if data.node is not None:
            return self
        inner = data.leaf(self.node.key).with_inner_leaves()
        return Tensor(inner, self.backend, self.node)

    def without_tapes(self) -> Tensor:
        """Return this tensor without its history on any of the nested backends."""
        data = self.data
        if type(data) is Tensor:
            bare = data.without_tapes()
            if bare is not data:
                return Tensor(bare, self.backend)
        return self.detach()

    def backward(self, gradient: Tensor | None = None) -> Gradients:
        """Return the gradients of this tensor by all leaves it depends on.

        A tensor of several elements needs ``gradient``, of the same shape and dtype:
        the vector of the vector-Jacobian product.

        Raises:
            TypeError: its backend does not track gradients.
            ValueError: the tensor has several elements and no ``gradient``, the shape
                or dtype of ``gradient`` differs, or the tensor depends on no leaf.
        """
        gradients: Gradients = self.backend.backward(self, gradient)
        return gradients

    def __dlpack__(self, **options: Any) -> Any:
        # NumPy exports only writeable arrays; the consumer is responsible for writes.
        data = self.data if self.backend.inner is self.backend else self.data.data
        return data.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        data = self.data if self.backend.inner is self.backend else self.data.data
        return data.__dlpack_device__()

    @property
    def __cuda_array_interface__(self) -> Any:
        return self.data.__cuda_array_interface__

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        value = self.item()
        if not isinstance(value, int):
            raise TypeError(f"expected an integer tensor, got {self.dtype}")
        return value

    def __float__(self) -> float:
        return float(self.item())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor of rank 0 has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        if self.size != 1:
            raise TypeError(
                f"expected one element for the format {spec!r}, got {self.dtype}"
                f"{list(self.shape)}; use x.tolist() and format its numbers"
            )
        return format(self.item(), spec)

    def __repr__(self) -> str:
        body = np.array2string(
            self.numpy(), prefix="tensor(", separator=", ", threshold=64, precision=4
        )
        return f"tensor({body}, {self.dtype}, {self.backend})"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks."""
        from burn.notebook import tensor_html

        return tensor_html(self)


add_hints(Tensor, TENSORS)


def tensor(
    data: Any, backend: Backend | None = None, *, dtype: DType | None = None
) -> Tensor:
    """Return a tensor with a copy of ``data``: nested lists, numbers, strings, arrays.

    Python floats become float32 and integers int64; arrays keep their dtype.
    ``backend`` is ``Cpu()`` by default.

    Raises:
        TypeError: ``backend`` is no backend, for example a dtype.
    """
    if backend is not None and not hasattr(backend, "level"):
        raise TypeError(
            "expected a backend as second argument, such as burn.Cpu(), "
            f"got {backend!r}; pass a dtype as dtype=..."
        )
    if isinstance(data, Tensor):
        data = data.numpy()
    array = np.array(data)
    if dtype is not None:
        array = array.astype(dtype)
    elif array.dtype.kind in "US":
        array = array.astype(object)
    elif not isinstance(data, np.ndarray | np.generic) and array.dtype.kind in "fc":
        array = array.astype(default_dtype(array.dtype.type(0).item()))
    return from_numpy(array, backend)


def from_numpy(array: np.ndarray[Any, Any], backend: Backend | None = None) -> Tensor:
    """Return a tensor that may share memory with ``array``: do not modify it."""
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("="))
    home = backend or default_device()
    return Tensor(home.from_numpy(array), home)


def innermost(tensor: Tensor) -> Tensor:
    """Return the tensor of the device or recorder, without enclosing tapes."""
    while type(tensor.data) is Tensor:
        tensor = tensor.data
    return tensor
