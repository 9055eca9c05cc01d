"""Modules that tests share are the same whichever test writes them first."""

from pathlib import Path

from burn_import.codegen.module.formatting import format_source
from tests.golden.test_golden import HERE as GOLDEN
from tests.layout import as_printed
from tests.modules import generate
from tests.written_modules import Modules

MODEL = GOLDEN / "transformer" / "model.onnx"


def test_shared_modules_are_laid_out(tmp_path: Path) -> None:
    with as_printed():
        printed, _ = generate(MODEL, tmp_path)
        text = Modules(tmp_path / "modules").text(MODEL)
    assert text == format_source(text)
    assert printed.read_text("ascii") != text
