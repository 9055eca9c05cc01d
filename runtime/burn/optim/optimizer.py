"""The base class of optimizers: parameter groups, clipping, step count and state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, TypedDict

from burn import ops
from burn.attribute_hints import OPTIMIZERS, add_hints
from burn.backend.base import Backend
from burn.box import Box, Deferred, Parameter
from burn.dtypes import DType
from burn.nn.module import Module
from burn.nn.patterns import selected
from burn.optim.clipping import clip_grad_norm, clip_grad_value
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

#: The parameters of an optimizer: a module, or parameters by path.
Parameters = Module | Mapping[str, Parameter]
#: Hyperparameter overrides by a pattern of paths, or by a tuple of patterns. (Keys of
#: mappings are invariant: neither ``str`` nor the union would fit all dictionaries.)
Groups = Mapping[Any, Mapping[str, Any]]


class Common(TypedDict, total=False):
    """Keyword arguments that every :class:`Optimizer` accepts."""

    groups: Groups | None
    clip_norm: float | None
    clip_value: float | None


class Group:
    """Parameters with common hyperparameters.

    ``lr`` and ``initial_lr``, which schedules start from, are boxes with float64
    scalars, so that plans read them anew in each step.
    """

    def __init__(self, parameters: dict[str, Parameter], options: dict[str, Any]):
        self.parameters = parameters
        self.options = dict(options)
        device = device_of(next(iter(parameters.values())))
        lr = float(self.options.pop("lr"))
        self.lr, self.initial_lr = scalar_box(lr, device), scalar_box(lr, device)

    def __getitem__(self, name: str) -> Any:
        return self.options[name]


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
            tuple of patterns; the first that matches counts.
        clip_norm: the largest Euclidean norm of all gradients together.
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
        self.clip_norm, self.clip_value = clip_norm, clip_value
        self.groups = [*_groups(chosen, options, groups or {})]
        for group in self.groups:
            _check_ranges(group)
        self.count = scalar_box(0.0, device_of(next(iter(chosen.values()))))
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
            ValueError: there is no gradient for any parameter, or a parameter was moved
                to a backend that tracks no gradients.
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
        if self.clip_norm is not None:
            grads = clip_grad_norm(grads, self.clip_norm)
        return grads

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

        Keys are ``step``, ``lr.<group>``, ``initial_lr.<group>`` and ``<path>.<slot>``.
        Parameters without a step have no state.
        """
        boxes = self.boxes()
        return {key: box.value.detach() for key, box in boxes.items() if box.is_set}

    def fitted_state(self, state: Mapping[str, Any]) -> Values:
        """Return the values that :meth:`load_state_dict` sets, with its errors."""
        boxes = self.boxes()
        parts = {f"{p}.{slot}" for p, slots in self.state.items() for slot in slots}
        values = fitted(boxes, state, "this optimizer", optional=parts)
        for path, slots in self.state.items():
            for slot, box in slots.items():
                if box not in values and box.is_set:
                    fill = self.initial(self._group_of(path), slot)
                    values[box] = filled(box.shape, fill, box.dtype, box.backend)
        return values

    def boxes(self) -> dict[str, Box]:
        """Return the state that a step changes, except parameters, by state key."""
        boxes = {"step": self.count}
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


def _groups(
    parameters: dict[str, Parameter], options: dict[str, Any], groups: Groups
) -> Iterator[Group]:
    """Yield the non-empty groups; parameters that match no pattern come first."""
    if not parameters:
        raise ValueError("expected parameters to optimize, got none")
    left, parts = dict(parameters), []
    for pattern, changed in groups.items():
        unknown = sorted(changed.keys() - options.keys())
        if unknown:
            raise ValueError(
                f"group {pattern!r}: expected options of {sorted(options)}, "
                f"got {unknown}"
            )
        patterns = (pattern,) if isinstance(pattern, str) else pattern
        part = {
            path: left.pop(path)
            for each in patterns
            for path in selected(parameters, each)
            if path in left
        }
        if part:
            parts.append(Group(part, options | dict(changed)))
    if left:
        yield Group(left, options)
    yield from parts


def vectors(parameters: Parameters) -> tuple[str, ...]:
    """Return the paths of parameters with at most one axis: biases, weights of norms.

    They are usually not decayed: ``AdamW(model, groups={vectors(model):
    {"weight_decay": 0.0}})``.
    """
    boxes: Any = (
        parameters.parameters()
        if isinstance(parameters, Module)
        else parameters.items()
    )
    return tuple(path for path, box in boxes if box.ndim < 2)


def _check_ranges(group: Group) -> None:
    values = {"lr": float(group.lr), **group.options}
    for name in ("lr", "weight_decay", "eps", "momentum", "lr_decay"):
        if name in values and not values[name] >= 0.0:
            raise ValueError(f"expected {name} >= 0, got {values[name]}")
    for beta in values.get("betas", ()):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"expected betas in [0, 1), got {values['betas']}")


def tracked(parameters: Parameters) -> dict[str, Parameter]:
    """Return parameters by path.

    Raises:
        TypeError: they have no paths, as PyTorch's lists of groups.
        ValueError: as :func:`check_tracked`.
    """
    if isinstance(parameters, Module):
        parameters = dict(parameters.parameters())
    pairs: list[Any] = list(
        parameters.items() if isinstance(parameters, Mapping) else parameters
    )
    for pair in pairs:
        if not (isinstance(pair, tuple) and isinstance(pair[-1], Parameter)):
            raise TypeError(
                "expected a module, or parameters by path, got an item of type "
                f"{type(pair).__name__}; groups={{'head.*': {{'lr': 1e-3}}}} sets "
                "options of some parameters"
            )
    boxes = dict(pairs)
    check_tracked(boxes)
    return boxes


def check_current(groups: Iterable[Group], model: Module) -> None:
    """Check that groups have the parameters that ``model`` has at their paths.

    Raises:
        ValueError: a layer was replaced after the optimizer was made.
    """
    own = {path: box for group in groups for path, box in group.parameters.items()}
    boxes = {id(box) for box in own.values()}
    current = dict(model.parameters())
    held = {id(box) for box in current.values()}
    replaced = [
        path
        for path, box in own.items()
        if id(box) not in held and id(current.get(path, box)) not in boxes
    ]
    if replaced:
        raise ValueError(
            f"{', '.join(replaced)}: the optimizer has parameters of layers that were "
            "replaced; make it after the last change of layers, and after "
            "model.to(Autodiff(Cpu()))"
        )


def check_tracked(parameters: Mapping[str, Parameter]) -> None:
    """Check that all parameters are on backends that track gradients.

    Raises:
        ValueError: one is not, for example in a layer replaced after ``model.to``.
    """
    plain = {
        p: b for p, b in parameters.items() if not b.held().backend.tracks_gradients
    }
    if plain:
        home = next(iter(plain.values())).held().backend
        raise ValueError(
            f"{', '.join(plain)}: expected parameters on an Autodiff backend, got "
            f"{home}; call model.to(Autodiff({home})) after the last change of layers"
        )
