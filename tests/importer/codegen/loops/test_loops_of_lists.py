"""Loops through lists of lists of different lengths, and beside defaults in a list."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser

import burn
from burn_import import load
from tests.importer.looped import check, normal

#: The number of layers of each stage.
LENGTHS = (3, 3, 4)


def test_inner_lists_of_several_lengths(tmp_path: Path) -> None:
    weights: dict[str, Any] = {}
    lines: list[str] = []
    value = "x"
    for stage, length in enumerate(LENGTHS):
        for layer in range(length):
            key = f"stages.{stage}.{layer}.weight"
            weights[key] = normal(4, 4, seed=len(weights)) / 2
            name = f"y{stage}_{layer}"
            lines.append(f"{name}_p = MatMul ({value}, {key.replace('.', '__')})")
            lines.append(f"{name}_t = Tanh ({name}_p)")
            lines.append(f"{name} = Add ({name}_t, {value})")
            value = name
    lines.append(f"y = Identity ({value})")
    text = "agraph (float[n, 4] x) => (float[n, 4] y) {\n" + "\n".join(lines) + "\n}"
    source = check(tmp_path, text, {"x": normal(3, 4, seed=99)}, weights=weights)
    assert "for " in source


def test_a_member_that_only_holds_the_default_of_an_input(tmp_path: Path) -> None:
    inside = ", ".join(f'float[3] "h.{i}.weight" = {{1, 2, 3}}' for i in range(3))
    lines = [
        f'["/h.{i}/Mul"] m{i} = Mul ("h.{i}.weight", x{i})\n'
        f'["/h.{i}/Tanh"] x{i + 1} = Tanh (m{i})\n'
        for i in range(4)
    ]
    model = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["": 17]>
        g (float[n, 3] x0, float[3] "h.3.weight" = {{1, 2, 3}}) => (float[n, 3] y)
        <{inside}> {{ {"".join(lines)} y = Neg (x4) }}""")
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    weight = np.array([1, 2, 3], np.float32)
    x = wanted = normal(2, 3, seed=5)
    for _ in range(4):
        wanted = np.tanh(weight * wanted)
    loaded: Any = load(path)
    got = loaded(burn.tensor(x)).numpy()
    np.testing.assert_allclose(got, -wanted, rtol=1e-5, atol=1e-6)


def test_collected_results_are_read_from_the_last_on(tmp_path: Path) -> None:
    weights: dict[str, Any] = {}
    for name in ("downs", "ups"):
        for number in range(4):
            key = f"{name}.{number}.weight"
            weights[key] = normal(4, 4, seed=len(weights)) / 2
    lines: list[str] = []
    value = "x"
    for number in range(4):
        lines.append(f"d{number}_p = MatMul ({value}, downs__{number}__weight)")
        lines.append(f"d{number} = Tanh (d{number}_p)")
        lines.append(f"p{number} = Sin (d{number})")
        value = f"p{number}"
    for number, skip in enumerate(reversed(range(4))):
        lines.append(f"u{number}_s = Mul ({value}, d{skip})")
        lines.append(f"u{number}_p = MatMul (u{number}_s, ups__{number}__weight)")
        lines.append(f"u{number} = Tanh (u{number}_p)")
        value = f"u{number}"
    lines.append(f"y = Identity ({value})")
    text = "agraph (float[n, 4] x) => (float[n, 4] y) {\n" + "\n".join(lines) + "\n}"
    source = check(tmp_path, text, {"x": normal(3, 4, seed=99)}, weights=weights)
    assert "[::-1]" in source
