"""Classes that a number would tell from others are named after what they hold."""

import pytest

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.module.distinctive_names import distinctive_names, with_names


def texts(**fields: list[str]) -> list[ClassText]:
    """Return a class for each name, with its attributes."""
    return [
        ClassText(name, "", [f"self.{one} = {one.title()}()" for one in own])
        for name, own in fields.items()
    ]


def test_a_module_that_only_some_hold_is_in_the_name() -> None:
    classes = texts(
        Layer=["norm", "attention"],
        Layer2=["norm", "cross"],
        Layer3=["norm", "linears"],
        Layer4=["attention", "norm"],
    )
    assert distinctive_names(classes) == {
        "Layer": "AttentionLayer",
        "Layer2": "CrossLayer",
        "Layer3": "LinearLayer",
        "Layer4": "AttentionLayer2",
    }


def test_the_first_of_two_keeps_its_name() -> None:
    classes = texts(Block=["conv", "down"], Block2=["conv", "attentions"])
    assert distinctive_names(classes) == {"Block2": "AttentionBlock"}


def test_the_second_has_the_plain_name_if_only_the_first_holds_more() -> None:
    classes = texts(Block=["conv1", "down"], Block2=["conv"])
    assert distinctive_names(classes) == {"Block": "DownBlock", "Block2": "Block"}


def test_a_flag_is_in_the_name() -> None:
    classes = texts(Layer=["conv"], Layer2=["conv"])
    classes[1].fields.append("self.residual = residual")
    classes[1].constructor = ", residual: bool"
    assert distinctive_names(classes) == {"Layer2": "ResidualLayer"}


def test_the_last_word_is_not_in_the_name_twice() -> None:
    classes = texts(EncoderLayer=["fc", "down_layer"], EncoderLayer2=["fc"])
    assert distinctive_names(classes) == {
        "EncoderLayer": "DownEncoderLayer",
        "EncoderLayer2": "EncoderLayer",
    }


def test_numbers_and_arrays_are_not_in_the_name() -> None:
    classes = texts(Stage=["layers", "down"], Stage2=["layers"])
    classes[0].fields.insert(0, "self.size = size")
    classes[0].fields.insert(0, "self.scale = nn.parameter(size)")
    assert distinctive_names(classes) == {"Stage": "DownStage", "Stage2": "Stage"}


def test_an_operand_that_only_one_takes_is_in_the_name() -> None:
    classes = texts(Layer=["conv"], Layer2=["conv1", "conv2"])
    classes[0].signature = ", x: Tensor"
    classes[1].signature = ", x: Tensor, residual: Tensor"
    assert distinctive_names(classes) == {"Layer2": "ResidualLayer"}
    classes[0].signature = ", features: Tensor"
    assert distinctive_names(classes) == {}


def test_operands_that_only_several_others_take_together_are_not_in_the_name() -> None:
    classes = texts(Layer=["conv"], Layer2=["conv1"], Layer3=["conv2"])
    classes[0].signature = ", mask: Tensor, bias: Tensor"
    classes[1].signature, classes[2].signature = ", mask: Tensor", ", bias: Tensor"
    assert distinctive_names(classes) == {}


@pytest.mark.parametrize(
    "classes",
    [
        texts(Block=["conv"], Block2=["conv1"]),
        texts(Conv=["a"], Conv1x1=["a", "b"], Stage=["c"]),
    ],
)
def test_others_keep_their_numbers(classes: list[ClassText]) -> None:
    assert "Block2" not in distinctive_names(classes)


def test_constructor_calls_have_the_new_names() -> None:
    classes = texts(Net=["block"], Block=["conv"], Block2=["attention"])
    classes[0].fields = ["self.blocks = nn.ModuleTuple(Block(), Block2(8))"]
    changed = with_names(classes, distinctive_names(classes))
    assert changed[0].fields == [
        "self.blocks = nn.ModuleTuple(Block(), AttentionBlock(8))"
    ]
    assert [one.name for one in changed] == ["Net", "Block", "AttentionBlock"]


def test_strings_and_attributes_keep_the_old_names() -> None:
    classes = texts(Net=["block"], Block=["conv"], Block2=["attention"])
    classes[0].fields = ['self.Block2 = Block2(8, mode="Block2")']
    classes[0].steps = 'Block2(8), *(Block2(mode="Block2") for _ in range(3))'
    changed = with_names(classes, distinctive_names(classes))
    assert changed[0].fields == ['self.Block2 = AttentionBlock(8, mode="Block2")']
    assert changed[0].steps == (
        'AttentionBlock(8), *(AttentionBlock(mode="Block2") for _ in range(3))'
    )
