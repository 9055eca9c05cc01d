"""Parameter groups: hyperparameters by patterns of paths, and checks of parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from burn.box import Parameter
from burn.nn.module import Module
from burn.nn.patterns import selected
from burn.optim.state import device_of, scalar_box

#: The parameters of an optimizer: a module, or parameters by path.
Parameters = Module | Mapping[str, Parameter]
#: Hyperparameter overrides by a pattern of paths, or by a tuple of patterns. (Keys of
#: mappings are invariant: neither ``str`` nor the union would fit all dictionaries.)
Groups = Mapping[Any, Mapping[str, Any]]


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


def make_groups(
    parameters: dict[str, Parameter], options: dict[str, Any], groups: Groups
) -> Iterator[Group]:
    """Yield the non-empty groups; parameters that match no pattern come first.

    A parameter that matches several patterns has the options of all of them, and is in
    a group with those that match the same.
    """
    if not parameters:
        raise ValueError("expected parameters to optimize, got none")
    matches: dict[str, tuple[int, ...]] = dict.fromkeys(parameters, ())
    for number, (pattern, changed) in enumerate(groups.items()):
        unknown = sorted(changed.keys() - options.keys())
        if unknown:
            raise ValueError(
                f"group {pattern!r}: expected options of {sorted(options)}, "
                f"got {unknown}"
            )
        patterns = (pattern,) if isinstance(pattern, str) else pattern
        for path in {path for each in patterns for path in selected(parameters, each)}:
            matches[path] += (number,)
    overrides = list(groups.values())
    for numbers in sorted(set(matches.values())):
        part = {path: parameters[path] for path in matches if matches[path] == numbers}
        merged = dict(options)
        for number in reversed(numbers):  # of one option, the first pattern's counts
            merged |= overrides[number]
        yield Group(part, merged)


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


def check_ranges(group: Group) -> None:
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
        ValueError: a layer was replaced after the optimizer was made, or a trainable
            parameter of ``model`` is on a backend that tracks no gradients.
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
    check_tracked({path: box for path, box in current.items() if box.requires_grad})


def check_complete(module: Module, parameters: Mapping[str, Parameter]) -> None:
    """Check that every trainable parameter of ``module`` is among ``parameters``.

    Raises:
        ValueError: a layer was added after the optimizer was made.
    """
    held = {id(box) for box in parameters.values()}
    added = {
        path: box
        for path, box in module.parameters()
        if id(box) not in held and box.requires_grad
    }
    if added:
        check_tracked(added)
        raise ValueError(
            f"{', '.join(added)}: the optimizer was made before these parameters were "
            "added to its module; make it after the last change of layers, or freeze "
            "them"
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
