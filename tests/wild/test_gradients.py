"""The comparison of gradients with PyTorch's in float64, and its page."""

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tests.wild.results import Row, read_rows

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("torch", "onnxscript", "onnxruntime")

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(
        any(find_spec(name) is None for name in PACKAGES), reason="needs PyTorch"
    ),
]


def test_gradients_of_three_formats_are_those_of_float64(tmp_path: Path) -> None:
    from tests.wild.__main__ import main

    out, page = tmp_path / "rows.jsonl", tmp_path / "page.md"
    main(["gradients", "--out", str(out), "--only", "*/gat", "--page", str(page)])
    rows = read_rows([out])
    assert len(rows) == 3
    for row in rows:
        assert row.gradient == "right" and row.gradient_count == 3
        assert row.gradient_error is not None and row.gradient_error < 1e-6
        assert row.gradient64_error is not None and row.gradient64_error < 1e-7
    assert "| research/gat | 3 |" in page.read_text("utf-8")


def test_the_page_has_every_model() -> None:
    from tests.wild.gradients import MODELS

    page = (ROOT / "docs" / "gradients.md").read_text("utf-8")
    listed = set(re.findall(r"^\| ((?:research|transformers)/\w+) \|", page, re.M))
    assert listed == {f"{k}/{name}" for k, names in MODELS.items() for name in names}


def test_shared_parameters_have_the_name_of_the_file() -> None:
    import torch

    from tests.wild.gradients import rename_shared

    module = torch.nn.ModuleDict({"a": torch.nn.Linear(2, 2), "b": torch.nn.ReLU()})
    module["c"] = module["a"]
    gradients = {"a.weight": np.ones(2), "a.bias": np.zeros(2)}
    renamed = rename_shared(gradients, module, {"c.weight", "a.bias"})
    assert set(renamed) == {"c.weight", "a.bias"}


def test_files_above_the_tolerance_are_listed() -> None:
    from tests.wild.gradient_page import gradient_page

    row = Row("lib/net:pt2", "lib", "nets", "net", "pt2", "right")
    row.gradient, row.gradient_error, row.gradient64_error = "wrong: w", 0.5, 0.5
    row.missing_keys = ["v"]
    page = gradient_page([row])
    assert "| lib/net:pt2 | wrong: w |" in page
    assert "pt2: 0 of 1 in float32, 0 in float64" in page
    assert "| lib/net | pt2 | `v` |" in page
