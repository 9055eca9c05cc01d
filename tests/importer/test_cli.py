"""The command line: what it writes, what it refuses, how it says so."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import helper

import burn
import burn_import.compiler
from burn.record import open_record
from burn_import import ModelGen, load
from burn_import.cli.report import clean
from burn_import.output import OutputRefused, check_module_path, read_header
from burn_import.pipeline import import_model, module_stem
from burn_import.version import VERSION
from tests.cli.commands import run
from tests.importer.onnx_files import graph, model, saved, stored

ONE_BUFFER = '''"""X."""

import burn
from burn import nn


class X(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.s = nn.buffer(1, dtype=burn.string)
'''
WEIGHT = np.random.default_rng(3).normal(size=(3,)).astype(np.float32)


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """A model y = relu(x + w)."""
    nodes = [
        helper.make_node("Add", ["x", "w"], ["h"], name="add"),
        helper.make_node("Relu", ["h"], ["y"], name="act"),
    ]
    proto = model(
        graph(nodes, {"x": ["batch", 3]}, initializers=(stored("w", WEIGHT),))
    )
    return saved(tmp_path / "net.onnx", proto)


def test_the_module_works(
    net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = run(net, "-o", tmp_path / "app_net.py", "--class-name", "Net")
    assert (answer.exit_code, answer.stderr) == (0, "")
    paths = tmp_path / "app_net.py", tmp_path / "app_net.safetensors"
    assert answer.stdout.splitlines() == [f"wrote {path}" for path in paths]
    head = paths[0].read_text("ascii").splitlines()[:4]
    assert head[0] == f"# Imported by burn-import {VERSION} from net.onnx (opset 17)."
    digests = read_header(paths[0])
    assert digests is not None and digests.body == digests.actual
    monkeypatch.syspath_prepend(str(tmp_path))
    app_net: Any = importlib.import_module("app_net")

    x = np.random.default_rng(1).normal(size=(2, 3)).astype(np.float32)
    y = app_net.Net.load()(burn.tensor(x)).numpy()
    np.testing.assert_array_equal(y, np.maximum(x + WEIGHT, 0))


def test_load_writes_nothing(net: Path) -> None:
    before = sorted(net.parent.iterdir())
    loaded: Any = load(net)
    x = np.random.default_rng(2).normal(size=(4, 3)).astype(np.float32)
    np.testing.assert_array_equal(
        loaded(burn.tensor(x)).numpy(), np.maximum(x + WEIGHT, 0)
    )
    assert sorted(net.parent.iterdir()) == before
    assert type(loaded).__module__ in sys.modules
    assert type(load(net)).__module__ != type(loaded).__module__


def test_tracebacks_show_the_source_of_loaded_models(net: Path) -> None:
    import traceback

    loaded: Any = load(net)
    vars(loaded).update(dict.fromkeys(vars(loaded)))  # no layers
    with pytest.raises(AttributeError, match="NoneType") as caught:
        loaded(burn.tensor([[1.0, 2.0, 3.0]]))
    frames = traceback.extract_tb(caught.value.__traceback__)
    generated = [f for f in frames if f.filename.startswith("<burn_import.loaded_")]
    assert generated and "x" in (generated[0].line or "")


def test_nothing_is_written_twice(net: Path, tmp_path: Path) -> None:
    output = tmp_path / "net.py"
    assert run(net, "-o", output).exit_code == 0
    files = [output, output.with_suffix(".safetensors")]
    before = [path.stat().st_mtime_ns for path in files]
    answer = run(net, "-o", output)
    assert answer.stdout.startswith("unchanged ")
    assert [path.stat().st_mtime_ns for path in files] == before
    files[1].unlink()
    assert run(net, "-o", output).stdout.startswith("wrote ")
    np.testing.assert_array_equal(next(iter(open_record(files[1]).values())), WEIGHT)


def test_edits_are_kept(net: Path, tmp_path: Path) -> None:
    output = tmp_path / "net.py"
    run(net, "-o", output)
    edited = output.read_text() + "# mine\n"
    output.write_text(edited)
    answer = run(net, "-o", output)
    assert answer.exit_code == 2 and answer.stdout == ""
    assert "net.py was edited since" in answer.stderr and "--force" in answer.stderr
    assert output.read_text() == edited
    assert run(net, "-o", output, "--force").exit_code == 0
    assert "# mine" not in output.read_text()


def test_a_checkout_with_other_line_ends_is_no_edit(net: Path, tmp_path: Path) -> None:
    output = tmp_path / "net.py"
    run(net, "-o", output)
    output.write_bytes(output.read_bytes().replace(b"\n", b"\r\n"))
    assert run(net, "-o", output).exit_code == 0


@pytest.mark.parametrize("name", ["net.py", "net.safetensors"])
def test_files_of_others_are_kept(net: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine\n")
    answer = run(net, "-o", tmp_path / "net.py")
    assert answer.exit_code == 2 and name in answer.stderr
    assert (tmp_path / name).read_text() == "mine\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([name, "net.onnx"])


def test_a_dry_run_writes_nothing(net: Path, tmp_path: Path) -> None:
    answer = run(net, "-o", tmp_path / "new.py", "--dry-run")
    assert answer.exit_code == 0 and answer.stdout.startswith("would write ")
    assert [path.name for path in tmp_path.iterdir()] == ["net.onnx"]


def test_the_default_output(
    net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = net.rename(tmp_path / "my-net v1.2.onnx")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert run(odd).stdout.splitlines()[0] == "wrote my_net_v1_2.py"
    assert module_stem(Path("a/json.onnx")) == "json_model"
    assert module_stem(Path("numpy.onnx")) == "numpy_model"
    assert module_stem(Path("class.onnx")) == "class_"
    assert module_stem(Path("3d.onnx")) == "model_3d"


@pytest.mark.parametrize(
    "name",
    [
        *("json.py", "class.py", "a-b.py", "net.txt", "n\u00e9t.py", "con.py", "2.py"),
        *("numpy.py", "burn.py", "Burn.py", "typing.py", "ml_dtypes.py"),
    ],
)
def test_names_that_are_no_modules(net: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(OutputRefused):
        check_module_path(tmp_path / name)
    assert run(net, "-o", tmp_path / name).exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["net.onnx"]


def unsupported(tmp_path: Path) -> Path:
    """A model of two operators that do not exist."""
    nodes = [
        helper.make_node("Relux", ["x"], ["h"], name="a\x1b[31m\n::error::b"),
        helper.make_node("Nope", ["h"], ["y"], name="second"),
    ]
    return saved(tmp_path / "bad.onnx", model(graph(nodes)))


def test_all_unsupported_operators_are_listed(tmp_path: Path) -> None:
    answer = run(unsupported(tmp_path), "-o", tmp_path / "bad.py")
    assert (answer.exit_code, answer.stdout) == (4, "")
    assert answer.stderr.count("error[unsupported]") == 2
    assert "'Relux' is not supported" in answer.stderr
    assert "(Nope, opset 17)" in answer.stderr and "help: did you mean" in answer.stderr
    assert "\x1b" not in answer.stderr and "\n::" not in answer.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["bad.onnx"]


def test_json(net: Path, tmp_path: Path) -> None:
    good = run(net, "-o", tmp_path / "net.py", "--format", "json")
    assert json.loads(good.stdout)["changed"] is True
    answer = run(unsupported(tmp_path), "--format", "json")
    data = json.loads(answer.stderr)
    assert (data["schema"], data["code"], data["kind"]) == (1, 4, "unsupported")
    assert [p["operator"] for p in data["problems"]] == ["Relux", "Nope"]
    assert answer.stderr.isascii()


def test_github(tmp_path: Path) -> None:
    lines = run(unsupported(tmp_path), "--format", "github").stderr.splitlines()
    assert len(lines) == 2 and all(line.startswith("::error title=") for line in lines)
    assert not any("\n" in line or "\x1b" in line for line in lines)


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (b"", 3, "empty file"),
        (b"<html>", 3, "HTML page"),
        (b"\x80\x02}q\x00.", 4, "this is a pickle"),
        (b"\x02\0\0\0\0\0\0\0{}", 4, "this is a safetensors file"),
    ],
)
@pytest.mark.parametrize("suffix", [".onnx", ".pt"])
def test_files_of_other_kinds(
    tmp_path: Path, content: bytes, code: int, message: str, suffix: str
) -> None:
    path = tmp_path / f"file{suffix}"
    path.write_bytes(content)
    answer = run(path, "-o", tmp_path / "out.py")
    assert answer.exit_code == code and message in answer.stderr


def test_a_checkpoint_of_torch(tmp_path: Path) -> None:
    import zipfile

    for name in ("net.pt", "net.onnx"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("net/data.pkl", b"\x80\x02}q\x00.")
        answer = run(tmp_path / name, "-o", tmp_path / "out.py")
        assert answer.exit_code == 4 and "PyTorch checkpoint" in answer.stderr
        assert "torch.onnx.export" in answer.stderr


@pytest.mark.parametrize("options", [(), ("--dry-run",), ("--format", "json")])
def test_parents_of_the_output_are_made(
    net: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    folder = tmp_path / "new" / "app"
    answer = run(net, "-o", folder / "app.py", *options)
    assert answer.exit_code == 0
    assert folder.exists() == ("--dry-run" not in options)
    answer = run(net, "-o", net / "app.py", *options)
    assert answer.exit_code == 2
    if options == ("--format", "json"):
        assert json.loads(answer.stderr)["kind"] == "output"
    else:
        assert "net.onnx': not a directory" in answer.stderr


def test_wrong_usage_and_missing_files(tmp_path: Path) -> None:
    assert run("a.onnx", "--unknown").exit_code == 2
    assert run(tmp_path / "gone.onnx").exit_code == 3
    assert run("net.onnx", "--class-name", "a b", "-o", "out.py").exit_code == 2
    invalid = model(graph([helper.make_node("Neg", ["y"], ["y"])]))
    path = saved(tmp_path / "loop.onnx", invalid)
    assert run(path, "-o", tmp_path / "out.py").exit_code == 5


@pytest.mark.parametrize(
    ("error", "code"), [(KeyError("k"), 70), (KeyboardInterrupt(), 130)]
)
def test_defects_and_interrupts(
    net: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    def broken(*_: Any) -> None:
        raise error

    monkeypatch.setattr(burn_import.compiler, "compile_graph", broken)
    output = net.with_name("out.py")
    answer = run(net, "-o", output)
    assert answer.exit_code == code and not output.exists()
    assert len(answer.stderr.splitlines()) == 1
    if code == 70:
        assert "please report it" in answer.stderr
        assert "Traceback" in run(net, "-o", output, "--verbose").stderr


def test_weights_come_first_and_failures_leave_nothing(
    net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = SimpleNamespace(
        text=ONE_BUFFER,
        weights=[("s", np.array(["a"], object))],
        class_name="X",
        notes=(),
    )
    monkeypatch.setattr(burn_import.compiler, "compile_graph", lambda *_: odd)
    answer = run(net, "-o", tmp_path / "out.py")
    assert answer.exit_code == 4 and "dtype object" in answer.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["net.onnx"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[0m", "a\\x1b[0m"),
        ("a\u202eb", "a\\u202eb"),
        ("a\nb\r", "a\\nb\\r"),
        ("\ud800", "\\ud800"),
        ("##[error]", "# #[error]"),
        ("onnx::MatMul_3 \u00e9", "onnx::MatMul_3 \u00e9"),
    ],
)
def test_names_are_cleaned(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_model_gen(net: Path, tmp_path: Path) -> None:
    other = tmp_path / "second.onnx"
    other.write_bytes(net.read_bytes())
    gen = ModelGen().input(net).input(other).out_dir(tmp_path / "app")
    paths = gen.run_from_script()
    names = ["net.py", "net.safetensors", "second.py", "second.safetensors"]
    assert [path.name for path in paths] == names and all(p.is_file() for p in paths)
    single = ModelGen().input(net).out_dir(tmp_path).output("one.py").class_name("One")
    assert "class One(" in single.run_from_script()[0].read_text()


def test_model_gen_that_cannot(net: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected an input"):
        ModelGen().run_from_script()
    with pytest.raises(ValueError, match="expected one input"):
        ModelGen().input(net).input(net).output("a.py").run_from_script()
    with pytest.raises(ValueError, match="different outputs"):
        ModelGen().input(net).input(net).run_from_script()
    gen = ModelGen().input(net).input(unsupported(tmp_path)).out_dir(tmp_path / "app")
    with pytest.raises(ValueError, match="Relux"):
        gen.run_from_script()
    assert not (tmp_path / "app").exists()


def test_the_same_model_gives_the_same_text(net: Path) -> None:
    assert import_model(net).text == import_model(net).text


def test_the_version_is_the_projects_and_needs_no_numpy() -> None:
    root = Path(__file__).parent.parent.parent
    code = "from burn_import.cli import main; import sys; main(['--version'])"
    roots = [str(root / name) for name in ("importer", "ir", "templates", "runtime")]
    script = f"import sys; sys.path[:0] = {roots!r}\n{code}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True)
    assert VERSION in done.stdout.decode()
    loaded = subprocess.run(
        [sys.executable, "-c", f"{script[:script.index('main([')]}print(*sys.modules)"],
        capture_output=True,
    ).stdout.decode()
    assert not {"numpy", "onnx", "black", "jinja2"} & set(loaded.split())


def test_the_version_tells_what_computes_if_asked_for() -> None:
    from click.testing import CliRunner

    from burn.backend import engine
    from burn_import.cli.command import burn_import

    short = CliRunner().invoke(burn_import, ["--version"])
    long = CliRunner().invoke(burn_import, ["--version", "-v"])
    assert short.output == f"burn-import, version {VERSION}\n"
    assert long.output.startswith(short.output)
    assert f"CPU engine: {engine().name} {engine().version}" in long.output
