"""Mistakes in calls of the command: each has a message, none is a defect."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from burn.record import atomic_write
from tests.cli.commands import run
from tests.importer.onnx_files import graph, model, saved
from tests.test_house import ROOT

DIGITS = str(ROOT / "models" / "digits" / "digits.onnx")


#: Calls that fail after the folder ``new/folder`` was created for their output.
FAILURES: tuple[Sequence[str], ...] = (
    ("import", "nope.onnx", "-o", "new/folder/net.py"),
    ("import", DIGITS, "-o", "new/folder/net.py", "--operators", "no_such_module"),
    ("import", DIGITS, "-o", "new/folder/net.py", "--shape", "x=1"),
    ("quantize", "nope.onnx", "-o", "new/folder/net.onnx", "--samples", "2"),
    ("export", "app/name.py", "-o", "new/folder/net.onnx"),
    ("update", "nope.onnx", "--weights", "app/net.safetensors", "-o", "new/a/n.onnx"),
)


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to a folder with a module and invalid inputs for it."""
    monkeypatch.chdir(tmp_path)
    Path("bad.onnx").write_bytes(b"no model" * 9)
    assert run(DIGITS, "-o", "app/net.py").exit_code == 0
    image = np.zeros((1, 1, 8, 8), np.float32)
    np.savez("name.npz", picture=image)
    np.savez("shape.npz", image=image[:, :, 1:])
    np.savez("dtype.npz", image=image.astype(np.float64))
    np.save("array.npy", image)
    np.savez("channels.npz", image=np.repeat(image, 3, axis=1))
    text = Path("app/net.py").read_text()
    for name, edit in EDITS.items():
        Path(f"app/{name}.py").write_text(edit(text))
    Path("script.py").write_text("import torch\n\nprint(torch)\n")
    nodes = [helper.make_node("MatMul", ["x", "x"], ["y"])]
    saved(Path("square.onnx"), model(graph(nodes, {"x": ["rows", "columns"]})))


#: What a person made of the module, by name of the file.
EDITS: dict[str, Callable[[str], str]] = {
    "syntax": lambda text: f"{text}\ndef (",
    "name": lambda text: text.replace("ops.relu(", "ops.rellu("),
    "argument": lambda text: text.replace("ConvBlock(1, 16)", "ConvBlock(1)"),
    "channels": lambda text: text.replace("ConvBlock(1, 16)", "ConvBlock(1, 17)"),
}
RUNS = "expected a module that runs, got"
INPUTS = ("verify", DIGITS, "--inputs")
#: Arguments, exit code, and texts in the message.
MISTAKES: tuple[tuple[Sequence[str], int, Sequence[str]], ...] = (
    (("verify", "app/net.py"), 3, ("module that burn-import wrote", "--module FILE")),
    (("bench", "app/net.py"), 3, ("module that burn-import wrote",)),
    (("inspect", "app/net.py"), 3, ("module that burn-import wrote",)),
    (("script.py",), 3, ("Python source", "torch.onnx.export")),
    (("verify", "app/net.safetensors"), 4, ("safetensors", "--reference")),
    (("bench", "app/net.safetensors"), 4, ("safetensors",)),
    (("verify", "squar.onnx"), 3, ("cannot read", "'square.onnx'")),
    (("bench", "squar.onnx"), 3, ("cannot read", "'square.onnx'")),
    (("verify", DIGITS, "--reference", "squar.onnx"), 3, ("'square.onnx'",)),
    (("verify", DIGITS, "--reference", "square.onnx"), 2, ("input 'image'",)),
    ((*INPUTS, "name.npz"), 2, ("an array 'image', got ['picture']", "image=...")),
    ((*INPUTS, "shape.npz"), 2, ("float32[batch, 1, 8, 8], got float32[1, 1, 7, 8]",)),
    ((*INPUTS, "dtype.npz"), 2, ("got float64[1, 1, 8, 8]",)),
    ((*INPUTS, "array.npy"), 2, ("got one array", "numpy.savez")),
    ((*INPUTS, "app/net.py"), 2, ("expected a .npz file of arrays", "numpy.savez")),
    ((*INPUTS, "nam.npz"), 2, ("there is no such file", "'name.npz'")),
    (("verify", DIGITS, "--size", "batsh=3"), 2, ("'batsh'", "There are batch")),
    (("bench", DIGITS, "--size", "batsh=3"), 2, ("'batsh'", "There are batch")),
    (("inspect", DIGITS, "--size", "batsh=3"), 2, ("'batsh'", "There are batch")),
    (("inspect", DIGITS, "--size", "batch=-3"), 2, ("expected NAME=NUMBER",)),
    (("verify", DIGITS, "--tolerance", "-1"), 2, ("x>=0",)),
    (
        ("verify", "square.onnx", "--size", "rows=3"),
        2,
        ("does not run the model", "--size NAME=NUMBER", "(columns, rows)"),
    ),
    (("bench", "square.onnx", "--size", "rows=3"), 2, ("does not run", "--size")),
    (("verfy", DIGITS), 2, ("there is no command 'verfy'", "did you mean verify?")),
    (("describe", DIGITS), 2, ("there is no command 'describe'",)),
    ((DIGITS, "-o", "my-net.py"), 2, ("'my-net'", "my_net.py")),
    ((DIGITS, "-o", "app"), 2, ("ends in .py", "app/net.py")),
    (("export", "app/net.py", "-o", "net.txt"), 2, ("ends in .onnx",)),
    (
        ("update", DIGITS, "--weights", "app/ne.safetensors", "-o", "new.onnx"),
        2,
        ("expected the record", "'net.safetensors'"),
    ),
    (
        ("export", "app/net.py", "-o", "b.onnx", "--weights", "bad.onnx"),
        2,
        ("a record of weights: bad.onnx", "the .safetensors file"),
    ),
    (
        ("update", DIGITS, "-o", "b.onnx", "--weights", "bad.onnx"),
        2,
        ("a record of weights: bad.onnx", "the .safetensors file"),
    ),
    (
        ("update", "bad.onnx", "-o", "b.onnx", "--weights", "app/net.safetensors"),
        3,
        ("damaged or cut off", "download or export it again"),
    ),
    (("export", DIGITS, "-o", "b.onnx"), 2, ("a Python file that", "burn-import dig")),
    (("bench", DIGITS, "--runs", "0"), 2, ("'--runs'", "x>=1")),
    (("https://example.com/net.onnx",), 3, ("cannot read", "download it first")),
    ((DIGITS, "--outputs", "foo"), 2, ("got 'foo'", "--graph net.svg")),
    ((DIGITS, "--operators", "no_such_module"), 4, ("No module named", "here or inst")),
    ((DIGITS, "--shape", "picture=1,1,8,8"), 2, ("got 'picture'", "'image'")),
    ((DIGITS, "--shape", "image=1,1,9,8"), 2, ("axis 2: expected 8", "got 9")),
    ((DIGITS, "--embd"), 2, ("'--embd'", "'--embed'")),
    ((DIGITS, "square.onnx"), 2, ("unexpected extra argument (square.onnx)",)),
    ((DIGITS, "-o", "weights.safetensors"), 3, ("ONNX model", "-o NAME.py")),
    ((DIGITS, "-o", "script.py"), 2, ("script.py was not written by burn-import",)),
    ((DIGITS, "-o", "script.py/net.py"), 2, ("'script.py'", "ot a directory")),
    ((DIGITS, "-o", "new/numpy.py"), 2, ("a module name of your own", "'numpy'")),
    (("quantize", DIGITS), 2, ("expected samples", "numpy.savez")),
    (("check", "app/net.py", "--model", "no.onnx"), 1, ("no model no.onnx",)),
    (("check", DIGITS), 1, ("not written by burn-import; pass the module",)),
    (
        ("verify", DIGITS, "--module", "app/syntax.py"),
        2,
        ("syntax.py, line", f"{RUNS} SyntaxError", "Correct the file"),
    ),
    (
        ("verify", DIGITS, "--module", "app/name.py"),
        2,
        (f"{RUNS} AttributeError: module 'burn.ops' has no attribute 'rellu'",),
    ),
    (("export", "app/name.py", "-o", "b.onnx"), 2, ("name.py, line", RUNS)),
    (("quantize", "app/name.py", "--samples", "2", "-o", "q.onnx"), 2, (RUNS,)),
    (
        ("verify", DIGITS, "--module", "app/argument.py"),
        2,
        (f"{RUNS} TypeError: ConvBlock", "missing 1 required positional argument"),
    ),
    (
        ("verify", DIGITS, "--module", "app/channels.py"),
        2,
        ("the weights do not fit", "expected float32[17, 1, 3, 3]"),
    ),
    (("diff", DIGITS, "app/syntax.py"), 2, (f"{RUNS} SyntaxError",)),
    (("verify", DIGITS, "--module", "app/nett.py"), 2, ("no file", "'net.py'")),
    (
        ("export", "app/net.py", "-o", "b.onnx", "--class-name", "Nat"),
        2,
        ("expected a class 'Nat'", "The file has Net."),
    ),
    (
        ("export", "app/net.py", "-o", "b.onnx", "--inputs", "channels.npz"),
        2,
        ("input 'image': expected float32[batch, 1, 8, 8], got float32[1, 3, 8, 8]",),
    ),
    ((DIGITS, "-o", "net.pt"), 2, ("ends in .py, got 'net.pt'", "Pass -o net.py.")),
    (("inspect", DIGITS, "--graph", "net.png"), 2, ("Pass --graph net.svg.",)),
    ((DIGITS, "--shape", "image=1x1x8x8"), 2, ("'1x1x8x8'", "x=batch,3,224,224")),
    ((DIGITS, "--depfile", "script.py"), 2, ("expected a depfile to replace",)),
)


@pytest.mark.parametrize(
    ("args", "code", "texts"), MISTAKES, ids=[" ".join(row[0][:4]) for row in MISTAKES]
)
def test_a_mistake_has_an_answer(
    args: Sequence[str], code: int, texts: Sequence[str]
) -> None:
    answer = run(*args)
    assert answer.exit_code == code, answer.output
    assert all(text in answer.output for text in texts), answer.output
    assert "internal error" not in answer.output


def test_a_class_that_is_called_otherwise_is_noted() -> None:
    answer = run(DIGITS, "-o", "other.py", "--class-name", "Tensor")
    assert answer.exit_code == 0
    assert "note: the class is called ModelTensor: 'Tensor'" in answer.stderr
    assert "note" not in run(DIGITS, "-o", "third.py", "--class-name", "Net").output


def test_the_modules_of_a_folder_are_checked() -> None:
    for name in EDITS:
        Path(f"app/{name}.py").unlink()
    assert run("check", ".").output == "app/net.py: ok\n"
    with Path("app/net.py").open("a") as file:
        file.write("# mine\n")
    answer = run("check", "app")
    assert answer.exit_code == 1 and "edited" in answer.output


def test_an_output_that_cannot_be_made_is_named_itself(tmp_path: Path) -> None:
    name = "n" * 250  # a temporary file beside it has a longer name
    with pytest.raises(OSError) as caught:
        atomic_write(tmp_path / name, b"")
    assert caught.value.filename == str(tmp_path / name)


def test_a_reader_that_stops_is_no_error() -> None:
    command = [sys.executable, "-m", "burn_import", "weights", DIGITS]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    process.wait()


def test_h_is_help() -> None:
    assert run("-h").output == run("--help").output
    assert run("verify", "-h").output == run("verify", "--help").output


@pytest.mark.parametrize("arguments", FAILURES)
def test_a_failure_leaves_no_folder(arguments: Sequence[str]) -> None:
    answer = run(*arguments)
    assert answer.exit_code in (2, 3, 4, 5), answer.output
    assert not Path("new").exists()


def test_folders_that_were_there_or_are_used_stay() -> None:
    Path("new").mkdir()
    assert run("nope.onnx", "-o", "new/folder/net.py").exit_code == 3
    assert Path("new").is_dir() and not Path("new/folder").exists()
    assert run(DIGITS, "-o", "new/folder/net.py").exit_code == 0
    assert Path("new/folder/net.py").is_file()


def test_missing_weights_are_named() -> None:
    weights = ("--weights", "app/nut.safetensors")
    answer = run("export", "app/net.py", "-o", "a.onnx", *weights)
    assert answer.exit_code == 2
    assert "the weights, there is no 'app/nut.safetensors'" in answer.stderr
    assert "Did you mean 'net.safetensors'?" in answer.stderr


def test_weights_of_another_head_name_the_argument() -> None:
    source = Path("app/net.py")
    wide = source.read_text("utf-8").replace("classes: int = 10", "classes: int = 3")
    weights = ("--weights", "app/net.safetensors")
    source.write_text(wide, "utf-8")
    answer = run("export", "app/net.py", "-o", "a.onnx", *weights)
    assert answer.exit_code == 2
    assert "head.linear.bias: expected float32[3], got float32[10]" in answer.stderr
    assert "other classes when they were trained" in answer.stderr


@pytest.mark.parametrize("names", ["a,b", "a,a", ""])
def test_names_of_outputs_are_counted(names: str) -> None:
    answer = run("export", "app/net.py", "-o", "a.onnx", "--output-names", names)
    assert answer.exit_code == (2 if names else 0)
    assert ("expected 1 output names" in answer.stderr) == bool(names)


def test_a_folder_without_modules_is_said() -> None:
    Path("empty").mkdir()
    answer = run("check", "empty")
    assert (answer.exit_code, answer.stdout) == (0, "")
    assert answer.stderr == "burn-import wrote no module in empty\n"


@pytest.mark.parametrize(
    "words",
    [
        ("bench", DIGITS, "--no-such-option"),
        ("quantize", DIGITS, "-o", "net.py"),
        ("insepct",),
        ("verify",),
    ],
)
def test_wrong_usage_is_shown_in_the_format_that_is_asked_for(
    words: tuple[str, ...],
) -> None:
    text = run(*words)
    assert text.stderr.startswith("Usage: burn-import")
    message = text.stderr.rpartition("\nError: ")[2].strip()
    answer = run(*words, "--format", "json")
    assert answer.exit_code == text.exit_code == 2
    data = json.loads(answer.stderr)
    assert (data["code"], data["kind"]) == (2, "refused")
    assert data["problems"][0]["message"] == message
    annotated = run(*words, "--format=github")
    assert annotated.exit_code == 2
    assert annotated.stderr == f"::error title=burn-import::{message}\n"


@pytest.mark.parametrize("shape", [[None, None], ["s77", "unk__2"], ["?", "?"]])
def test_extents_without_a_name_are_called_as_inspect_calls_them(
    shape: list[str | None],
) -> None:
    nodes = [helper.make_node("MatMul", ["x", "x"], ["y"])]
    path = saved(Path("open.onnx"), model(graph(nodes, {"x": shape})))
    assert "x: float32[batch, length]" in run("inspect", path).stdout
    answer = run("verify", path, "--size", "batch=3")
    assert "pass --size NAME=NUMBER for other extents (batch, length)" in (
        answer.stderr
    )
    sizes = ("--size", "batch=3", "--size", "length=3")
    assert run("verify", path, *sizes).exit_code == 0


@pytest.mark.parametrize("words", [("verify",), ("quantize", "-o", "int8.onnx")])
def test_what_is_wrong_with_a_model_comes_before_what_onnxruntime_says(
    words: tuple[str, ...],
) -> None:
    proto = onnx.load(DIGITS)
    proto.graph.node[0].op_type = "Konv"
    Path("net.onnx").write_bytes(proto.SerializeToString())
    samples = ("--samples", "2") if words[0] == "quantize" else ()
    answer = run(words[0], "net.onnx", *words[1:], *samples)
    assert answer.exit_code == 4
    assert "operator 'Konv' is not supported" in answer.stderr
    assert "did you mean 'Conv'?" in answer.stderr and "random" not in answer.stderr


def test_a_model_that_onnxruntime_alone_refuses_is_not_blamed_on_the_inputs() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    proto = model(graph(nodes, {"x": [2]}))
    proto.ir_version = 99
    answer = run("verify", saved(Path("net.onnx"), proto))
    assert "onnxruntime does not load the model" in answer.stderr
    assert "The inputs are not the reason" in answer.stderr
