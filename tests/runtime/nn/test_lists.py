"""Lists of modules: slices share the modules, and a loop can go along them."""

import numpy as np
import pytest

from burn import nn, tensor
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
