"""``nn.check_inputs``: a method with declared inputs accepts them and nothing else."""

import re
from typing import Any

import numpy as np
import pytest

import burn
from burn import Tensor, nn


class Net(nn.Module):
    @nn.check_inputs(
        image="float32[batch, 3, ?, 8]",
        ids="int64[batch]",
        gain="float32[]",
        more="float32[past + batch]",
        twice="float32[2 * batch]",
    )
    def __call__(
        self,
        image: Tensor,
        ids: Tensor,
        gain: Tensor | None = None,
        more: Any = None,
        twice: Any = None,
    ) -> Tensor:
        return image.sum() + ids.sum().cast(burn.float32)


def zeros(*shape: int, dtype: Any = np.float32) -> Tensor:
    return burn.tensor(np.zeros(shape, dtype))


IMAGE, IDS = zeros(2, 3, 5, 8), zeros(2, dtype=np.int64)

WRONG_IMAGES: list[tuple[Any, str]] = [
    (
        zeros(1, 3, 200, 200, dtype=np.float64),
        "float64[1, 3, 200, 200]; pass image.cast(burn.float32)",
    ),
    (
        zeros(2, 4, 5, 8),
        "float32[2, 4, 5, 8]; axis 1 is fixed to 3 by the model file or --shape",
    ),
    (zeros(2, 3, 8), "float32[2, 3, 8]"),
    (
        IMAGE.numpy(),
        "the NumPy array float32[2, 3, 5, 8]; pass burn.tensor(image)",
    ),
    (
        np.zeros(3),
        "the NumPy array float64[3]; pass burn.tensor(image, dtype=burn.float32)",
    ),
    ([1.5, 2.5], "a list of float; pass burn.tensor(image)"),
    ([[1], [1, 2]], "a list of list; pass burn.tensor(image)"),
    ([], "an empty list; pass burn.tensor(image)"),
    (1, "int; pass burn.tensor(image, dtype=burn.float32)"),
    (None, "None"),
    ("text", "str"),
    (re, "module"),
]


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize(("image", "got"), WRONG_IMAGES)
def test_the_message_names_class_input_expected_and_got(
    image: Any, got: str, is_compiled: bool
) -> None:
    model: Any = burn.compile(Net()) if is_compiled else Net()
    model(IMAGE, IDS)  # there is a plan
    expected = f"Net: input 'image': expected float32[batch, 3, ?, 8], got {got}"
    for _ in range(2):
        with pytest.raises(nn.InputError) as caught:
            model(image, IDS)
        assert str(caught.value) == expected
    assert model(IMAGE, IDS).item() == 0


def test_all_wrong_inputs_are_in_one_message() -> None:
    with pytest.raises(nn.InputError) as caught:
        Net()(ids=zeros(2, dtype=np.int32), image=zeros(2, 3, 5, 9))
    assert str(caught.value).splitlines() == [
        "Net: input 'image': expected float32[batch, 3, ?, 8], got float32[2, 3, 5, 9]"
        "; axis 3 is fixed to 8 by the model file or --shape",
        "Net: input 'ids': expected int64[batch], got int32[2]"
        "; pass ids.cast(burn.int64)",
    ]


@pytest.mark.parametrize("by_keyword", [False, True])
def test_extents_of_one_name_are_equal(by_keyword: bool) -> None:
    ids = zeros(3, dtype=np.int64)
    message = r"got int64\[3\]; batch is 2 in input 'image'$"
    with pytest.raises(nn.InputError, match=message):
        Net()(IMAGE, ids=ids) if by_keyword else Net()(IMAGE, ids)


def test_extents_of_one_name_are_equal_within_an_input() -> None:
    class Square(nn.Module):
        @nn.check_inputs(x="float32[n, n]")
        def __call__(self, x: Tensor) -> Tensor:
            return x

    assert Square()(zeros(0, 0)).shape == (0, 0)
    with pytest.raises(nn.InputError, match="n is 2 in another axis"):
        Square()(zeros(2, 3))


def test_the_error_is_a_type_error_and_a_value_error() -> None:
    assert issubclass(nn.InputError, TypeError)
    assert issubclass(nn.InputError, ValueError)


def test_a_default_of_none_accepts_none() -> None:
    model = Net()
    for gain in (None, burn.tensor(2.0)):
        assert model(IMAGE, IDS, gain).item() == model(IMAGE, IDS, gain=gain).item()
    with pytest.raises(nn.InputError, match=r"float32\[\] \| None, got float32\[1\]"):
        model(IMAGE, IDS, zeros(1))


def test_other_expressions_accept_every_extent() -> None:
    assert Net()(IMAGE, IDS, None, zeros(5)).shape == ()
    with pytest.raises(nn.InputError, match=r"expected float32\[past \+ batch\]"):
        Net()(IMAGE, IDS, None, zeros(4, 1))


def test_a_multiple_accepts_that_of_the_named_extent() -> None:
    assert Net()(IMAGE, IDS, None, None, zeros(4)).shape == ()
    with pytest.raises(nn.InputError, match="axis 0 has to be a multiple of 2"):
        Net()(IMAGE, IDS, None, None, zeros(5))
    with pytest.raises(nn.InputError, match="batch is 2 in input 'image'"):
        Net()(IMAGE, IDS, None, None, zeros(6))


def test_parameters_and_tensors_with_history_are_accepted() -> None:
    lifted = IMAGE.to(burn.Autodiff(burn.Cpu())).require_grad()
    result = Net()(lifted, IDS.to(lifted.backend))
    assert result.backward()[lifted].shape == IMAGE.shape
    assert Net()(nn.Parameter(IMAGE), IDS).item() == 0  # type: ignore[arg-type]
    with pytest.raises(nn.InputError, match="got float64"):
        Net()(zeros(1, dtype=np.float64).to(lifted.backend), IDS)


def test_missing_and_unexpected_arguments_are_errors_of_python() -> None:
    model: Any = Net()
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        model(IMAGE)
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        model(IMAGE, IDS, size=1)
    with pytest.raises(TypeError, match="takes from 3 to 6 positional"):
        model(IMAGE, IDS, None, None, None, 1)


class Containers(nn.Module):
    @nn.check_inputs(
        items="list[float32[n]]",
        table="dict[string, float32[]]",
        text="string[...]",
        flag="bool[] | None",
    )
    def __call__(self, items: Any, table: Any, text: Any, flag: Any) -> int:
        return len(items)


def test_lists_dicts_strings_and_optional_values() -> None:
    text = burn.tensor(["a"])
    call: Any = Containers()
    assert call([zeros(2), zeros(3)], {}, text, None) == 2
    assert call([], {"a": 1.0}, burn.tensor("b"), burn.tensor(True)) == 0
    with pytest.raises(nn.InputError) as caught:
        call([zeros(2), 1], [], zeros(1), 1)
    assert str(caught.value).splitlines() == [
        "Containers: input 'items': expected list[float32[n]], "
        "got a list of float32[2] and int",
        "Containers: input 'table': expected dict[string, float32[]], "
        "got an empty list",
        "Containers: input 'text': expected string[...], got float32[1]",
        "Containers: input 'flag': expected bool[] | None, got int; "
        "pass burn.tensor(flag, dtype=burn.bool_)",
    ]


@pytest.mark.parametrize("text", ["float32", "float31[2]", "promote[2]", "list[int]"])
def test_a_type_that_cannot_be_parsed_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a type as"):
        nn.check_inputs(x=text)(lambda self, x: x)


def test_an_input_that_is_no_parameter_is_refused() -> None:
    with pytest.raises(ValueError, match="has no parameter 'y'"):
        nn.check_inputs(y="float32[2]")(lambda self, x: x)
