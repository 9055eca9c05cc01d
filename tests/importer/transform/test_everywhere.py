"""The same options on the command line, in scripts and in tables."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from burn_import import ModelGen, Options
from burn_import.build.models import options_in
from burn_import.pipeline import import_model
from tests.cli.commands import run
from tests.importer.onnx_files import stored
from tests.importer.transform.blocks import MIDDLE


def test_everything_on_the_command_line(net: Path, tmp_path: Path) -> None:
    output = tmp_path / "part.py"
    args = ["--inputs", MIDDLE, "--outputs", "mean,parts", "--dtype", "float16"]
    args += ["--shape", f"{MIDDLE}=2,n,6", "--flat", "--simplify", "all"]
    answer = run(net, "-o", output, *args)
    assert (answer.exit_code, answer.stderr) == (0, "")
    options = Options(
        passes=("all",),
        stem="part",
        flat=True,
        dtype="float16",
        shapes={MIDDLE: (2, "n", 6)},
        inputs=(MIDDLE,),
        outputs=("mean", "parts"),
    )
    lines = output.read_text().split("\n", 4)
    assert lines[4] == import_model(net, options).text
    assert f"(opset 17, options {options.mark})" in lines[0]
    assert not Options(class_name="A", stem="b", operators=("c",)).mark
    gen = ModelGen().input(net).out_dir(tmp_path / "gen").output("part.py")
    written = gen.options(options).run_from_script()[0]
    assert written.read_text().split("\n", 4)[4] == lines[4]


def test_a_record_has_no_such_options(net: Path, tmp_path: Path) -> None:
    answer = run(net, "-o", tmp_path / "w.safetensors", "--dtype", "float16")
    assert (
        answer.exit_code == 2
        and "--dtype: expected a module as output" in answer.stderr
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--simplify", "gelo"], "did you mean 'gelu'?"),
        (["--outputs", "yy"], "help: did you mean 'y'?"),
        (["--shape", "x=1,2,3"], "error[options]: input 'x', axis 2"),
        (["--dtype", "half"], "'half' is not one of"),
        (["--no-simplify", "--simplify", "gelu"], "--simplify and --no-simplify"),
        (["--shape", "x=1,2,6", "--shape", "x=1,2,6"], "one shape of 'x'"),
    ],
)
def test_wrong_usage(net: Path, tmp_path: Path, args: list[str], message: str) -> None:
    answer = run(net, "-o", tmp_path / "o.py", *args)
    assert answer.exit_code == 2 and message in answer.stderr
    assert "--force" not in answer.stderr and not (tmp_path / "o.py").exists()


def test_wrong_options_in_other_formats(net: Path) -> None:
    args = ["--outputs", "a,b", "--format"]
    data = json.loads(run(net, *args, "json").stderr)
    assert (data["code"], data["kind"], len(data["problems"])) == (2, "options", 2)
    lines = run(net, *args, "github").stderr.splitlines()
    assert len(lines) == 2 and all(line.startswith("::error ") for line in lines)


def test_a_dry_run_shows_the_difference(net: Path, tmp_path: Path) -> None:
    output = tmp_path / "o.py"
    lines = run(net, "-o", output, "--dry-run").stdout.splitlines()
    assert lines[2:4] == ["--- /dev/null", f"+++ {output.as_posix()}"]
    assert "added    enc.0.lin.bias    float32[6]" in lines
    assert not output.exists()
    run(net, "-o", output)
    assert len(run(net, "-o", output, "--dry-run").stdout.splitlines()) == 2
    proto = onnx.load(net)
    proto.graph.initializer[1].CopyFrom(stored("enc.0.lin.bias", np.ones(6, "f4")))
    net.write_bytes(proto.SerializeToString())
    before = {p: p.read_bytes() for p in tmp_path.iterdir()}
    lines = run(net, "-o", output, "--dry-run", "--outputs", MIDDLE).stdout.splitlines()
    assert "changed  enc.0.lin.bias    float32[6]" in lines
    assert "removed  enc.1.lin.weight  float32[6, 6]" in lines
    assert any(line.startswith("-    y  float32") for line in lines)
    data = json.loads(run(net, "-o", output, "--dry-run", "--format", "json").stdout)
    assert data["changed"] and data["diff"][0] == f"--- {output.as_posix()}"
    expected = {"name": "enc.0.lin.bias", "before": "float32[6]", "after": "float32[6]"}
    assert data["changed_weights"] == [expected]
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before


TABLE = {
    "class-name": "Net",
    "flat": True,
    "simplify": ["all"],
    "dtype": "float16",
    "shapes": {"x": ["batch", 3]},
    "inputs": ["x"],
    "outputs": ["y"],
    "operators": ["app.ops"],
}


def test_a_table_says_the_same() -> None:
    assert options_in(TABLE) == Options(
        "Net",
        passes=("all",),
        operators=("app.ops",),
        flat=True,
        dtype="float16",
        shapes={"x": ("batch", 3)},
        inputs=("x",),
        outputs=("y",),
    )
    assert options_in({"simplify": False}).passes == ()
    assert options_in({"simplify": True}) == options_in({}) == Options()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"flat": 1}, "flat: expected true or false, got 1"),
        ({"dtype": "half"}, "dtype: expected one of float16"),
        ({"shapes": ["x"]}, "shapes: expected a table"),
        ({"shapes": {"x": [1.5]}}, "shapes: x: expected a list"),
        ({"inputs": "x"}, "inputs: expected a list of text"),
        ({"simplify": "gelu"}, "simplify: expected a list"),
        ({"shape": {}}, "expected keys among"),
    ],
)
def test_tables_that_say_nothing(table: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        options_in(table)
