"""Reverse-mode automatic differentiation over any backend, with a tape of calls."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from burn.backend.balanced import BalancedCallNode
from burn.backend.base import Backend, map_structure
from burn.backend.tape import (
    CallNode,
    Leaf,
    Node,
    Output,
    Receiver,
    kept_operands,
    kept_results,
    leaves_below,
    nodes_in,
    swept,
)
from burn.box import Box
from burn.tensor import Tensor

if TYPE_CHECKING:
    from burn.primitive import Primitive

#: The results that a tape keeps for the backward pass: all, or all but those of
#: memory-bound primitives.
Checkpointing = Literal["none", "balanced"]

_IN_BACKWARD: ContextVar[bool] = ContextVar("burn.in_backward", default=False)
_RECEIVER: ContextVar[Receiver | None] = ContextVar("burn.receiver", default=None)


def is_in_backward() -> bool:
    """Return whether the calls of this context compute gradients."""
    return _IN_BACKWARD.get()


@contextmanager
def receiving_gradients(receiver: Receiver) -> Iterator[None]:
    """Pass gradients to ``receiver`` as soon as they are complete.

    That is before the backward pass ends. Leaves with several nodes on the tape are
    excluded; ``backward`` returns all of them.
    """
    token = _RECEIVER.set(receiver)
    try:
        yield
    finally:
        _RECEIVER.reset(token)


class Autodiff(Backend):
    """Tensors of ``inner`` whose history is recorded. ``Autodiff(B) is Autodiff(B)``.

    A model whose parameters live here is in training; ``model.valid()`` gives the same
    model on ``inner``. ``Autodiff(Autodiff(B))`` gives second derivatives: gradients
    are tensors on ``Autodiff(B)``, with a history there. ``loss.inner()`` is the loss
    on that backend, to be added to functions of gradients.

    With ``checkpointing="balanced"`` the backward pass computes the results of
    memory-bound primitives (elementwise functions, casts, views, normalizations) again
    instead of keeping them: the same bits, for less memory and more time.

    Raises:
        ValueError: ``checkpointing`` is neither ``"none"`` nor ``"balanced"``.
    """

    _made: "dict[tuple[int, str], Autodiff]" = {}

    def __new__(
        cls,
        inner: Backend,
        fresh: bool = False,
        *,
        checkpointing: Checkpointing = "none",
    ) -> "Autodiff":
        if checkpointing not in ("none", "balanced"):
            raise ValueError(
                "expected checkpointing='none' or checkpointing='balanced', "
                f"got {checkpointing!r}"
            )
        key = (id(inner), checkpointing)
        backend = None if fresh else cls._made.get(key)
        if backend is None:
            backend = super().__new__(cls)
            backend._inner, backend.checkpointing = inner, checkpointing
            backend.is_fresh = fresh
            backend.level = inner.level + 1
            if not fresh:
                cls._made[key] = backend
        return backend

    _inner: Backend
    checkpointing: Checkpointing
    #: Whether it is a tape of its own, of which there are others with the same
    #: ``inner``: rules differentiate functions of constants of other tapes with it.
    is_fresh: bool

    @property
    def inner(self) -> Backend:
        return self._inner

    @property
    def tracks_gradients(self) -> bool:
        return True

    def call(
        self,
        primitive: "Primitive[..., Any]",
        args: tuple[Any, ...],
        static: dict[str, Any],
    ) -> Any:
        inner, sources, tracked = [], [], False
        for arg in args:
            if type(arg) is Tensor and arg.backend is self:
                value, source = arg.data, arg.node
                tracked = tracked or source is not None
            else:
                value, source = self._peel(arg)
                tracked = tracked or (source is not None and _tracked(source))
            inner.append(value)
            sources.append(source)
        if tracked and self._inner.tracks_gradients and not self.is_fresh:
            self._check_constants(args)
        result = primitive(*inner, **static)
        if primitive.host:
            return result
        node = None
        if tracked and primitive.rule is not None:
            node = self._record(primitive, sources, inner, static, result)
        if type(result) is Tensor:
            return Tensor(result, self, node)
        return tuple(
            Tensor(item, self, None if node is None else Output(node, position))
            for position, item in enumerate(result)
        )

    def _record(
        self,
        primitive: "Primitive[..., Any]",
        sources: list[Any],
        operands: list[Any],
        static: dict[str, Any],
        result: Any,
    ) -> CallNode:
        """Return the node of a call, which keeps the values that gradients read."""
        if self.checkpointing == "balanced":
            return BalancedCallNode(
                primitive, tuple(sources), tuple(operands), static, result
            )
        reads, saved = primitive.reads, tuple(operands)
        if reads is not None:
            saved = kept_operands(reads, sources, operands)
            result = kept_results(reads, result)
        return CallNode(primitive, tuple(sources), saved, static, result)

    def _peel(self, arg: Any) -> tuple[Any, Any]:
        """Return ``arg`` without this backend's layer, and its node on the tape."""
        if isinstance(arg, Box):
            arg = arg.value
        if type(arg) is Tensor:
            if arg.backend is self:
                return arg.data, arg.node
            return arg, None
        if isinstance(arg, list | tuple):
            pairs = [self._peel(item) for item in arg]
            return type(arg)(value for value, _ in pairs), [node for _, node in pairs]
        if isinstance(arg, slice):
            return map_structure(lambda part: self._peel(part)[0], arg), None
        return arg, None

    def _check_constants(self, operands: Any) -> None:
        """Check that operands on inner tapes are constants for this one.

        Raises:
            ValueError: as :meth:`_check_constant`.
        """
        for operand in operands:
            if isinstance(operand, list | tuple):
                self._check_constants(operand)
            value = operand.value if isinstance(operand, Box) else operand
            is_inner = type(value) is Tensor and value.backend is not self
            if is_inner and value.node is not None:
                self._check_constant(value)

    def _check_constant(self, tensor: Tensor) -> None:
        """Check that an operand of an inner tape is constant for this one.

        Raises:
            ValueError: it depends on a leaf of this tape too, as gradients of nested
                backends do: that part of the gradient would be lost here.
        """
        for leaf in leaves_below(tensor.node):
            key = leaf.key
            held = key.held().backend if isinstance(key, Box) else None
            if held is self or isinstance(key, Leaf) and key is not leaf:
                raise ValueError(
                    f"expected operands on one backend, got one on {self} and one on "
                    f"{tensor.backend} that depends on a parameter or leaf of both: "
                    "its part of the gradient would be lost; call .inner() of the "
                    "first, or .detach() of the second"
                )

    def __reduce__(self) -> Any:
        return _autodiff, (self._inner, self.is_fresh, self.checkpointing)

    def from_numpy(self, array: np.ndarray[Any, Any]) -> Tensor:
        return Tensor(self._inner.from_numpy(array), self._inner)

    def to_numpy(self, data: Tensor) -> np.ndarray[Any, Any]:
        return data.numpy()

    def leaf(self, key: Any) -> "Leaf":
        return Leaf(key)

    def backward(self, tensor: Tensor, gradient: Tensor | None) -> "Gradients":
        return backward(tensor, gradient)

    def __repr__(self) -> str:
        if self.checkpointing == "none":
            return f"Autodiff({self._inner})"
        return f"Autodiff({self._inner}, checkpointing={self.checkpointing!r})"


def _autodiff(inner: Backend, fresh: bool, checkpointing: Checkpointing) -> Autodiff:
    return Autodiff(inner, fresh, checkpointing=checkpointing)


def _tracked(source: Any) -> bool:
    return next(nodes_in(source), None) is not None


class Gradients(Mapping[Any, Tensor]):
    """Gradients by parameter or tensor: ``grads[model.weight]``, ``grads[x]``.

    Raises ``KeyError`` for a box or tensor that the loss does not depend on.
    """

    def __init__(self, gradients: dict[Any, Tensor]) -> None:
        self._found = gradients

    def __getitem__(self, key: Any) -> Tensor:
        return self._found[_key(key)]

    def __contains__(self, key: object) -> bool:
        return _key(key) in self._found

    def __iter__(self) -> Iterator[Any]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def by_name(self, module: Any) -> dict[str, Tensor]:
        """Return the gradients of the parameters of ``module``, by path.

        Parameters that the loss does not depend on, such as frozen ones, are excluded.
        """
        return {path: self[box] for path, box in module.parameters() if box in self}


def _key(key: Any) -> Any:
    if type(key) is Tensor:
        return key.node.key if isinstance(key.node, Leaf) else key.node
    return key


def backward(
    tensor: Tensor, gradient: Tensor | None = None, *, retain_history: bool = True
) -> Gradients:
    """Return the gradients of a tensor with respect to all leaves it depends on.

    ``gradient``, of the shape of the tensor, is the vector of the vector-Jacobian
    product; the default for one element is 1. Without ``retain_history`` the tape's
    values are dropped as soon as they are used, and another backward pass through the
    same calls is an error.

    Raises:
        TypeError: its backend does not track gradients, or ``gradient`` is no tensor.
        ValueError: it has several elements and no ``gradient``, that has another shape
            or dtype, or the tensor depends on no leaf.
    """
    gradients = gradients_of(tensor, gradient, retain_history=retain_history)
    if not isinstance(tensor.node, Node):
        raise ValueError(
            f"the loss depends on no parameter on {tensor.backend}, and on no tensor "
            "with require_grad(): move the model there with .to(backend), and do not "
            "freeze all of it"
        )
    return gradients


def gradients_of(
    tensor: Tensor, gradient: Tensor | None = None, *, retain_history: bool = True
) -> Gradients:
    """Return :func:`backward`, or no gradients if ``tensor`` depends on no leaf."""
    root = tensor.node
    if not isinstance(tensor.backend, Autodiff):
        tensor.backend.backward(tensor, gradient)  # raises TypeError
        raise AssertionError("a backend without gradients")
    seed = _seed(tensor, tensor.backend.inner, gradient)
    if not isinstance(root, Node):
        return Gradients({})
    token = _IN_BACKWARD.set(True)
    try:
        return Gradients(_sweep(root, seed, retain_history))
    finally:
        _IN_BACKWARD.reset(token)


def _seed(tensor: Tensor, inner: Backend, gradient: Tensor | None) -> Tensor:
    """Return the initial gradient of :func:`backward`, on the inner backend."""
    if gradient is None:
        if tensor.size != 1:
            raise ValueError(
                f"expected one element, got {list(tensor.shape)}; take a mean, or give "
                "the gradient of each element"
            )
        return Tensor(inner.from_numpy(np.ones(tensor.shape, tensor.dtype)), inner)
    if not isinstance(gradient, Tensor):
        raise TypeError(f"expected a tensor as gradient, got {type(gradient).__name__}")
    if (gradient.shape, gradient.dtype) != (tensor.shape, tensor.dtype):
        raise ValueError(
            f"expected a gradient {tensor.dtype}{list(tensor.shape)}, "
            f"got {gradient.dtype}{list(gradient.shape)}"
        )
    if gradient.backend is tensor.backend:
        seed: Tensor = gradient.data
        return seed
    return gradient


def _sweep(root: Node, seed: Tensor, retain_history: bool) -> dict[Any, Tensor]:
    """Return the gradients of the leaves below ``root``, by their keys."""
    gradients: dict[Any, Tensor] = {}
    by_node = swept(
        {root: seed}, receiver=_RECEIVER.get(), retain_history=retain_history
    )
    for node, grad in by_node.items():
        if isinstance(node, Leaf):
            earlier = gradients.get(node.key)
            gradients[node.key] = grad if earlier is None else earlier + grad
    return gradients
