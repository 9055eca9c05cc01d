"""Names of parameters where the signature of a method needs several lines."""

from pathlib import Path

import pytest

from tests.importer.looped import check, normal

SIZE = 4


def imported(folder: Path, names: str, block: str) -> str:
    """Return the source of a model whose module ``decoder`` computes ``block``."""
    given = ", ".join(f"float[n, {SIZE}] {name}" for name in names.split())
    head = '["/head/MatMul"] y = MatMul (last, head__weight)'
    text = f"agraph ({given}) => (float[n, {SIZE}] y) {{\n{block}{head}\n}}"
    feed = {name: normal(3, SIZE, seed=i) for i, name in enumerate(names.split())}
    weight = normal(SIZE, SIZE)
    weights = {"decoder.fc.weight": weight, "head.weight": weight}
    return check(folder, text, feed, weights=weights)


def block(*operands: str) -> str:
    """Return the lines of a module that reads ``operands``."""
    head, *others = operands
    lines = f'["/decoder/fc/MatMul"] v0 = MatMul ({head}, decoder__fc__weight)\n'
    for number, name in enumerate(others):
        function = "Mul" if "mask" in name else "Sub"
        lines += f'["/decoder/{function}_{number}"] v{number + 1} = {function} '
        lines += f"(v{number}, {name})\n"
    return lines + f'["/decoder/Tanh"] last = Tanh (v{len(others)})\n'


def signatures(source: str) -> list[str]:
    """Return the first lines of the methods of modules, the model's left out."""
    lines = source.partition("class Decoder")[2].splitlines()
    return [line.strip() for line in lines if line.strip().startswith("def __call__")]


LONG = ("decoder_input_states", "encoder_hidden_states", "attention_mask")


def test_long_names_become_words_of_attention(tmp_path: Path) -> None:
    source = imported(tmp_path, " ".join(LONG), block(*LONG))
    (signature,) = signatures(source)
    assert "context: Tensor" in signature
    assert "mask: Tensor" in signature
    assert "attention_mask: Tensor" not in signature


def test_names_of_the_model_itself_are_those_of_the_file(tmp_path: Path) -> None:
    source = imported(tmp_path, " ".join(LONG), block(*LONG))
    assert "encoder_hidden_states: Tensor" in source.partition("class Decoder")[0]


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("states", "attention_mask"), id="one line is enough"),
        pytest.param((*LONG, "padding_mask"), id="two masks"),
    ],
)
def test_other_names_stay(names: tuple[str, ...], tmp_path: Path) -> None:
    source = imported(tmp_path, " ".join(names), block(*names))
    assert "attention_mask: Tensor" in source.partition("class Decoder")[2]
