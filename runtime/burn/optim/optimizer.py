"""The base class of optimizers: parameter groups, clipping, step count and state."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, TypedDict

from burn import ops
from burn.attribute_hints import OPTIMIZERS, add_hints
from burn.backend.base import Backend
from burn.box import Box, Deferred, Parameter
from burn.dtypes import DType, float64
from burn.nn.module import Module
from burn.optim.clipping import clip_grad_value, clip_grads_with_norm, total_norm
from burn.optim.groups import (
    Group,
    Groups,
    Parameters,
    check_complete,
    check_ranges,
    check_tracked,
    make_groups,
    tracked,
)
from burn.optim.state import (
    Stateful,
    Values,
    device_of,
    filled,
    fitted,
    innermost_device,
    scalar,
    scalar_box,
)
from burn.tensor import Tensor, innermost


class Common(TypedDict, total=False):
    """Keyword arguments that every :class:`Optimizer` accepts."""

    groups: Groups | None
    clip_norm: float | None
    clip_value: float | None


class Optimizer(Stateful):
    """Changes parameters by their gradients: ``opt.step(loss.backward())``.

    The step count, learning rates and moments are boxes: a compiled step reads and
    updates them, and is not recorded again when a learning rate changes. There is one
    step count for all parameters. State of a parameter takes memory from its first
    gradient on; parameters without a gradient are left as they are, frozen ones too.

    Args:
        parameters: a module, or parameters by path.
        options: hyperparameters, ``lr`` among them.
        groups: hyperparameters for parameters whose paths match a pattern, or one of a
            tuple of patterns. Those of all matching patterns apply; where two set the
            same one, the first does.
        clip_norm: the largest Euclidean norm of all gradients together; ``math.inf``
            only measures :attr:`grad_norm`.
        clip_value: the largest magnitude of an element of a gradient; applied first.

    Raises:
        ValueError: a parameter is on a backend that tracks no gradients, a pattern
            matches nothing, or a hyperparameter is unknown or out of its range.
    """

    #: Names of the state tensors of a parameter, in its shape and dtype.
    slots: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        parameters: Parameters,
        options: dict[str, Any],
        groups: Groups | None = None,
        clip_norm: float | None = None,
        clip_value: float | None = None,
    ) -> None:
        chosen = tracked(parameters)
        self._module = parameters if isinstance(parameters, Module) else None
        for name, limit in (("clip_norm", clip_norm), ("clip_value", clip_value)):
            if limit is not None and not limit > 0.0:
                raise ValueError(f"expected {name} > 0, got {limit}")
        self.clip_norm, self.clip_value = clip_norm, clip_value
        self.groups = [*make_groups(chosen, options, groups or {})]
        for group in self.groups:
            check_ranges(group)
        device = device_of(next(iter(chosen.values())))
        self.count = scalar_box(0.0, device)
        self._norm = Box(Deferred((), float64, lambda: scalar(math.nan, device)))
        self.state = {
            path: {slot: self._slot(group, box, slot) for slot in self.slots_of(group)}
            for group in self.groups
            for path, box in group.parameters.items()
        }

    def slots_of(self, group: Group) -> tuple[str, ...]:
        """Return the names of the state tensors that the options of ``group`` need."""
        return self.slots

    def initial(self, group: Group, slot: str) -> float:
        """Return the initial value of every element of a state tensor."""
        return 0.0

    @abstractmethod
    def scales(self, group: Group, lr: Tensor, step: Tensor) -> dict[str, Tensor]:
        """Return scalars of this step that all parameters of ``group`` share.

        ``lr`` and ``step`` (from 1) are float64 scalars; so are the results, which
        ``update`` receives in the dtype of the parameter.
        """

    @abstractmethod
    def update(
        self,
        group: Group,
        scales: Mapping[str, Tensor],
        state: dict[str, Tensor],
        x: Tensor,
        grad: Tensor,
    ) -> Tensor:
        """Return the parameter after this step; new state tensors are stored in
        ``state``.
        """

    def step(self, gradients: Mapping[Any, Tensor]) -> None:
        """Update every parameter in ``gradients``, given by parameter or by path.

        Raises:
            ValueError: there is no gradient for any parameter, a parameter was moved
                to a backend that tracks no gradients, or added to the module later.
        """
        self.update_parameters(self.prepared(gradients))

    def update_parameters(self, grads: Mapping[str, Tensor]) -> None:
        """Count a step, and update the parameters in ``grads``, given by path.

        ``grads`` are on the device: the result of :meth:`prepared` or a part of it.
        """
        count = innermost(self.count.value) + 1.0
        self.count.set(count)
        for group in self.groups:
            scales = _Scales(self.scales(group, innermost(group.lr.value), count))
            for path, box in group.parameters.items():
                if path not in grads:
                    continue
                boxes = self.state[path]
                state = {slot: innermost(b.value) for slot, b in boxes.items()}
                x = innermost(box.value)
                box.set(self.update(group, scales.of(x.dtype), state, x, grads[path]))
                for slot, value in state.items():
                    boxes[slot].set(value)

    def prepared(self, gradients: Mapping[Any, Tensor]) -> dict[str, Tensor]:
        """Return the gradients of the optimizer's parameters by path, clipped.

        Raises:
            ValueError: as :meth:`step`.
        """
        boxes = dict(self.parameters())
        if self._module is not None:
            check_complete(self._module, boxes)
        grads = {}
        for path, box in boxes.items():
            key: Any = path if path in gradients else box
            if key in gradients:
                grads[path] = innermost(gradients[key])
        if not grads:
            check_tracked(boxes)
            raise ValueError(
                "expected the gradient of at least one parameter of the optimizer, got "
                f"{len(gradients)} gradients of others; is everything frozen, or was "
                "the optimizer made before nn.lora or a new layer?"
            )
        if self.clip_value is not None:
            grads = clip_grad_value(grads, self.clip_value)
        return grads if self.clip_norm is None else self._clip(grads, self.clip_norm)

    def _clip(self, grads: dict[str, Tensor], limit: float) -> dict[str, Tensor]:
        """Set :attr:`grad_norm`; return the gradients scaled to at most ``limit``."""
        norm = total_norm(grads)
        self._norm.set(ops.cast(norm, dtype=float64))
        return grads if math.isinf(limit) else clip_grads_with_norm(grads, limit, norm)

    @property
    def grad_norm(self) -> float | None:
        """The Euclidean norm of all gradients of the last step before it was clipped.

        None without ``clip_norm``, which it is computed for, and before the first step.
        """
        is_known = self.clip_norm is not None and self._norm.is_set
        return float(self._norm) if is_known else None

    def parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Yield (path, parameter) by group."""
        for group in self.groups:
            yield from group.parameters.items()

    @property
    def lr(self) -> float:
        """The learning rate of the first group; setting it sets those of all groups.

        A schedule continues from the new rate.
        """
        return float(self.groups[0].lr)

    @lr.setter
    def lr(self, value: float) -> None:
        for group in self.groups:
            for box in (group.lr, group.initial_lr):
                box.set(scalar(value, box.backend))

    def to(self, backend: Backend) -> None:
        """Move the state to the device of ``backend``, where the model was moved."""
        device = innermost_device(backend)
        for box in self.boxes().values():
            box.to(device)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the step count, learning rates and state tensors by key.

        Keys are ``step``, ``lr.<group>``, ``initial_lr.<group>`` and ``<path>.<slot>``,
        and ``grad_norm`` if it is known.
        Parameters without a step have no state.
        """
        boxes = self.boxes()
        return {key: box.value.detach() for key, box in boxes.items() if box.is_set}

    def fitted_state(self, state: Mapping[str, Any]) -> Values:
        """Return the values that :meth:`load_state_dict` sets, with its errors."""
        boxes = self.boxes()
        parts = {f"{p}.{slot}" for p, slots in self.state.items() for slot in slots}
        parts.add("grad_norm")
        values = fitted(boxes, state, "this optimizer", optional=parts)
        for path, slots in self.state.items():
            for slot, box in slots.items():
                if box not in values and box.is_set:
                    fill = self.initial(self._group_of(path), slot)
                    values[box] = filled(box.shape, fill, box.dtype, box.backend)
        return values

    def boxes(self) -> dict[str, Box]:
        """Return the state that a step changes, except parameters, by state key."""
        boxes = {"step": self.count, "grad_norm": self._norm}
        for i, group in enumerate(self.groups):
            boxes |= {f"lr.{i}": group.lr, f"initial_lr.{i}": group.initial_lr}
        for path, slots in self.state.items():
            boxes |= {f"{path}.{slot}": box for slot, box in slots.items()}
        return boxes

    def _group_of(self, path: str) -> Group:
        return next(group for group in self.groups if path in group.parameters)

    def _slot(self, group: Group, box: Parameter, slot: str) -> Box:
        fill = self.initial(group, slot)

        def make() -> Tensor:
            return filled(box.shape, fill, box.dtype, device_of(box))

        return Box(Deferred(box.shape, box.dtype, make))


add_hints(Optimizer, OPTIMIZERS)


class _Scales:
    """The same scalars in the dtype of each parameter."""

    def __init__(self, exact: dict[str, Tensor]) -> None:
        self._exact = exact
        self._cast: dict[DType, dict[str, Tensor]] = {}

    def of(self, dtype: DType) -> dict[str, Tensor]:
        if dtype not in self._cast:
            self._cast[dtype] = {
                name: ops.cast(value, dtype=dtype)
                for name, value in self._exact.items()
            }
        return self._cast[dtype]
