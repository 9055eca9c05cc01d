"""Processes that native code ended, by the package whose code it was."""

import faulthandler
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.runner import JUDGES, innermost_package

STACK = """Fatal Python error: Segmentation fault

Current thread 0x00007f21d120cb80 (most recent call first):
  File "{}", line 58 in infer_shapes
  File "/code/tests/fuzz/oracle.py", line 35 in check
"""


@pytest.mark.parametrize(
    "file, expected",
    [
        ("/v/lib/python3.11/site-packages/onnx/shape_inference.py", "onnx"),
        ("/v/site-packages/onnxruntime/capi/session.py", "onnxruntime"),
        ("/code/onnx/runtime/burn/tensor.py", None),
    ],
)
def test_the_package_of_the_innermost_frame(file: str, expected: str | None) -> None:
    assert innermost_package(STACK.format(file)) == expected


def test_no_stack() -> None:
    assert innermost_package("Killed") is None


def test_a_stack_of_this_python(tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / JUDGES[0]
    package.mkdir(parents=True)
    text = "import faulthandler\n\ndef fail():\n    faulthandler._sigabrt()\n"
    (package / "native.py").write_text(text)
    assert hasattr(faulthandler, "_sigabrt")
    command = [sys.executable, "-X", "faulthandler", "-c"]
    command += ["import native; native.fail()"]
    process = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode != 0
    assert innermost_package(process.stderr) == JUDGES[0]
