"""Loops through lists of lists of different lengths."""

from pathlib import Path
from typing import Any

from tests.importer.looped import check, normal

#: How many layers each stage has.
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
