"""Lists of modules: slices share the modules, and a loop can go along them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, nn, tensor
from burn.tensor import Tensor


class Scale(nn.Module):
    """Multiplies by a number."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.factor


class Shift(nn.Module):
    """Adds a stored number."""

    def __init__(self) -> None:
        super().__init__()
        self.offset = nn.parameter(1)

    def __call__(self, x: Tensor) -> Tensor:
        return x + self.offset.value


def test_a_slice_of_a_list_holds_the_same_modules() -> None:
    layers = nn.ModuleList(Shift() for _ in range(4))
    rest = layers[1:]
    assert isinstance(rest, nn.ModuleList)
    assert [a is b for a, b in zip(rest, list(layers)[1:], strict=True)] == [True] * 3
    assert len(layers[:2]) == 2 and len(layers[4:]) == 0
    assert layers[-1] is rest[2]
    # Keys of a slice begin at 0: it is for going along, not for records.
    assert [name for name, _ in rest.children()] == ["0", "1", "2"]


def test_going_along_a_slice_beside_values() -> None:
    layers = nn.ModuleList(Scale(float(n)) for n in (2, 3, 5))
    x = tensor(np.ones(2, np.float32))
    for layer, more in zip(layers[1:], (x, x + x), strict=True):
        x = layer(x) + more
    np.testing.assert_array_equal(x.numpy(), [22.0, 22.0])


def test_going_along_modules_of_several_classes() -> None:
    layers = nn.ModuleTuple(Scale(2.0), Shift(), Scale(3.0))
    layers[1].offset.set(tensor(np.ones(1, np.float32)))
    x = tensor(np.ones(2, np.float32))
    for layer in layers[1:]:
        x = layer(x)
    np.testing.assert_array_equal(x.numpy(), [6.0, 6.0])
    assert [name for name, _ in layers.boxes()] == ["1.offset"]


def test_a_sequence_of_several_classes_is_one_call() -> None:
    chain = nn.Sequential(Scale(2.0), nn.Sequential(Shift(), Scale(3.0)))
    x = tensor(np.ones(2, np.float32))
    np.testing.assert_array_equal(chain(x).numpy(), chain[1](x * 2.0).numpy())
    assert [name for name, _ in chain.boxes()] == ["1.0.offset"]


def test_parameters_in_a_list_are_called_by_their_numbers() -> None:
    boxes = nn.ParameterList([nn.parameter(3), None, nn.buffer(2)])
    boxes[2].set(tensor(np.ones(2, np.float32)))
    assert list(boxes.state_dict()) == ["0", "2"]
    assert [path for path, _ in boxes.parameters()] == ["0"]
    assert (len(boxes), len(list(boxes))) == (3, 2)
    with pytest.raises(IndexError, match="found None"):
        boxes[1]


class Plain(nn.Module):
    """Holds what it is given in a field, and calls nothing."""

    def __init__(self, blocks: Any) -> None:
        super().__init__()
        self.blocks = blocks
        self.head = nn.Linear(1, 1)


#: A field that is not registered, and the end of the error.
UNREGISTERED = {
    "list": ([Shift()], "a list of modules, .* use nn.ModuleList"),
    "tuple": ((Shift(), Scale(2.0)), "a tuple of modules, .* use nn.ModuleList"),
    "nested": ([[Shift()], []], "a list of modules, .* use nn.ModuleList"),
    "boxes": ([nn.parameter(1)], "a list of parameters, .* use nn.ParameterList"),
    "dict": ({"a": Shift()}, "a dict of modules, .* assign each of them to an attr"),
}
USES: dict[str, Callable[[nn.Module], Any]] = {
    "parameters": lambda net: list(net.parameters()),
    "state_dict": lambda net: net.state_dict(),
    "load_state_dict": lambda net: net.load_state_dict({}),
    "to": lambda net: net.to(Autodiff(Cpu())),
    "valid": lambda net: net.valid(),
    "freeze": lambda net: net.freeze(),
    "save_weights": lambda net: net.save_weights("net.safetensors"),
    "num_parameters": lambda net: net.num_parameters(),
    "repr": repr,
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", UNREGISTERED)
def test_parts_in_a_plain_container_are_refused(
    kind: str, use: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks, message = UNREGISTERED[kind]
    with pytest.raises(TypeError, match=rf"Plain\.blocks is {message}"):
        USES[use](Plain(blocks))
    assert not list(tmp_path.iterdir())


def test_a_list_that_grows_after_it_was_assigned_is_refused() -> None:
    net = Plain([])
    assert [path for path, _ in net.parameters()] == ["head.weight", "head.bias"]
    net.blocks.append(Shift())
    with pytest.raises(TypeError, match=r"Plain\.blocks is a list of modules"):
        nn.ModuleList([net]).state_dict()


def test_other_containers_are_no_state() -> None:
    for blocks in ([3, 3], (1, None), {"a": 1}, [[1, 2], "same"], [burn.tensor([1])]):
        net = Plain(blocks)
        net._teacher = [Shift()]  # type: ignore[attr-defined]
        assert len(dict(net.parameters())) == 2
    for module in (nn.ModuleList([Shift()]), nn.ModuleTuple(Shift())):
        assert len(dict(Plain(module).parameters())) == 3


def test_a_list_is_no_step_of_a_sequence() -> None:
    with pytest.raises(TypeError, match=r"Sequential\(\*layers\), got list"):
        nn.Sequential([nn.Linear(2, 2)])  # type: ignore[arg-type]


def test_a_class_with_forward_alone_says_how_to_be_called() -> None:
    class Net(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x

    class Called(Net):
        def __call__(self, x: Tensor) -> Tensor:
            return self.forward(x)

    net: Any = Net()
    with pytest.raises(TypeError, match="Net has no __call__: rename forward"):
        net(tensor(np.zeros(2)))
    assert Called()(tensor(np.ones(2))).tolist() == [1, 1]
