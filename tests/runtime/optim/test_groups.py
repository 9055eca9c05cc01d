"""Groups of parameters, gradient norms, and layers that an optimizer does not know."""

import math
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, loss, nn, ops, optim, train


class Net(nn.Module):
    """[N, 4] to three classes, by way of a layer that can be added later."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.middle: Any = None
        self.head = nn.Linear(8, 3)

    def __call__(self, x: Any) -> Any:
        x = ops.relu(self.first(x))
        return self.head(x if self.middle is None else self.middle(x))


X = burn.tensor(np.random.default_rng(0).standard_normal((6, 4), np.float32))
Y = burn.tensor(np.arange(6) % 3)


def step_of(model: Net, opt: optim.Optimizer) -> Any:
    @train.step(model, opt)
    def step(x: Any, y: Any) -> Any:
        return loss.cross_entropy(model(x), y)

    return step


def test_options_of_all_matching_patterns_apply() -> None:
    model = Net().to(Autodiff(Cpu()))
    groups = {
        "head.*": {"lr": 1.0},
        optim.vectors(model): {"weight_decay": 0.0, "lr": 2.0},
    }
    opt = optim.AdamW(model, lr=0.1, weight_decay=0.2, groups=groups)
    options = {
        path: (float(group.lr), group["weight_decay"])
        for group in opt.groups
        for path in group.parameters
    }
    assert options == {
        "first.weight": (0.1, 0.2),
        "head.weight": (1.0, 0.2),
        "head.bias": (1.0, 0.0),
        "first.bias": (2.0, 0.0),
    }
    assert list(options) == ["first.weight", "head.weight", "head.bias", "first.bias"]


@pytest.mark.parametrize("clip", [0.5, math.inf])
def test_the_norm_is_that_before_clipping(clip: float) -> None:
    model = Net().to(Autodiff(Cpu()))
    opt = optim.SGD(model, lr=1.0, clip_norm=clip)
    assert opt.grad_norm is None
    grads = {path: ops.ones_like(box.value) for path, box in model.parameters()}
    norm = math.sqrt(sum(g.numpy().size for g in grads.values()))
    before = model.head.weight.numpy().copy()
    opt.step(grads)
    assert opt.grad_norm == pytest.approx(norm)
    change = (before - model.head.weight.numpy()).max()
    assert change == pytest.approx(min(1.0, clip / norm), rel=1e-5)
    other = optim.SGD(model, lr=1.0)
    other.load_state_dict(opt.state_dict())
    assert other.grad_norm is None  # it does not clip
    state = {k: v for k, v in opt.state_dict().items() if k != "grad_norm"}
    opt.load_state_dict(state)  # of a version before the norm


@pytest.mark.parametrize("whole", [True, False])
def test_a_new_layer_without_autodiff_is_an_error(whole: bool) -> None:
    model = Net().to(Autodiff(Cpu()))
    opt = optim.SGD(model if whole else dict(model.parameters()), lr=0.1)
    step = step_of(model, opt)
    model.middle = nn.Linear(8, 8)
    with pytest.raises(ValueError, match=r"middle\.weight, middle\.bias: expected"):
        step(X, Y)
    for _, box in model.middle.parameters():
        box.requires_grad = False
    step(X, Y)  # a frozen layer is a constant


def test_a_new_layer_that_the_optimizer_does_not_have_is_an_error() -> None:
    model = Net().to(Autodiff(Cpu()))
    opt = optim.SGD(model, lr=0.1)
    model.middle = nn.Linear(8, 8).to(Autodiff(Cpu()))
    message = r"middle\.bias: the optimizer was made before"
    with pytest.raises(ValueError, match=message):
        step_of(model, opt)(X, Y)
    with pytest.raises(ValueError, match=message):
        opt.step(loss.cross_entropy(model(X), Y).backward())
    part = optim.SGD(dict(model.parameters()), lr=0.1)
    step_of(model, part)(X, Y)
