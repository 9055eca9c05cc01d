"""The examples of ``docs/records.md`` work in order."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from burn_import.cli.command import burn_import as command
from tests.importer.pytorch_files import tensor, zip_file

PAGE = Path(__file__).parents[3] / "docs" / "records.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHAPES = {
    "encoder.0.weight": (16, 8),
    "encoder.0.bias": (16,),
    "encoder.2.weight": (16, 16),
    "encoder.2.bias": (16,),
    "norm.weight": (16,),
    "norm.bias": (16,),
    "head.weight": (3, 16),
    "head.bias": (3,),
}


def checkpoint() -> bytes:
    """Return a checkpoint of a model that was trained on several devices."""
    rng = np.random.default_rng(0)
    weights = {
        f"module.{key}": tensor(str(n), rng.normal(size=shape).astype(np.float16))
        for n, (key, shape) in enumerate(SHAPES.items())
    }
    return zip_file({"epoch": 3, "state_dict": weights})


def test_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("checkpoint.pt").write_bytes(checkpoint())
    names: dict[str, Any] = {"__name__": "records"}
    printed, kinds = "", []
    for kind, content in BLOCK.findall(PAGE.read_text("utf-8")):
        kinds.append(kind)
        if kind == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(content, PAGE.name, "exec"), names)
            printed = output.getvalue()
        elif kind == "output":
            assert printed == content
        else:
            line, _, expected = content.partition("\n")
            answer = CliRunner().invoke(command, line.split()[2:])
            assert (answer.exit_code, answer.output) == (0, expected)
    assert kinds.count("python") >= 8 and {"output", "console"} <= set(kinds)
