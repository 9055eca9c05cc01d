"""Options that do not apply to a file are refused by name."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from burn.record import write_record
from burn_import import Options
from burn_import.options import Hints
from burn_import.transform.option_checks import OF_PROGRAMS, OF_WEIGHTS, given_options
from tests.cli.commands import run
from tests.cli.test_mistakes import DIGITS
from tests.importer import exported_files, script_files
from tests.importer.pytorch_files import tensor, zip_file

#: An option of each kind, with a value that is valid where it applies.
GIVEN = {
    "--class-name": ("Model",),
    "--flat": (),
    "--standalone": (),
    "--embed": (),
    "--dropout": (),
    "--shard-size": ("1MB",),
    "--simplify": ("all",),
    "--no-simplify": (),
    "--dtype": ("float64",),
    "--target": ("torch",),
    "--shape": ("x=2,3",),
    "--inputs": ("x",),
    "--outputs": ("y",),
    "--config": ("config.json",),
    "--activation": ("relu",),
    "--padding": ("same",),
    "--pool": ("max",),
    "--top-level-key": ("model",),
    "--operators": ("app.ops",),
}


def onnx_model() -> Path:
    """Return an ONNX model."""
    return Path(DIGITS)


def exported_program() -> Path:
    """Return an exported program."""
    return exported_files.saved(Path(), *exported_files.linear_program())


def torchscript_archive() -> Path:
    """Return a TorchScript archive."""
    return script_files.mlp()[0].saved(Path())


def state_dict() -> Path:
    """Return a state dict of PyTorch whose architecture is unknown."""
    path = Path("net.pt")
    path.write_bytes(zip_file({"head.w": tensor("0", np.ones((2, 3), np.float32))}))
    return path


def safetensors_file() -> Path:
    """Return the same weights in a record."""
    path = Path("net.safetensors")
    write_record(path, [("head.w", np.ones((2, 3), np.float32))])
    return path


PROGRAMS: dict[str, Callable[[], Path]] = {
    "an ONNX model": onnx_model,
    "an exported program": exported_program,
    "a TorchScript archive": torchscript_archive,
}
WEIGHTS = [state_dict, safetensors_file]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to a folder with a configuration."""
    monkeypatch.chdir(tmp_path)
    Path("config.json").write_text("{}")
    Path("app").mkdir()
    Path("app/ops.py").write_text("")


def refused(flag: str, model: Path, output: str = "out.py") -> str:
    """Return the error for an option that is refused before anything is written."""
    answer = run(model, flag, *GIVEN[flag], "-o", output)
    assert answer.exit_code == 2, answer.output
    assert not Path(output).exists()
    return answer.stderr


@pytest.mark.parametrize("flag", OF_WEIGHTS)
@pytest.mark.parametrize("kind", PROGRAMS)
def test_programs_refuse_options_of_weights(kind: str, flag: str) -> None:
    answer = refused(flag, PROGRAMS[kind]())
    assert f"{flag}: expected weights alone, got {kind}" in answer
    assert f"help: {flag} is {OF_WEIGHTS[flag]}" in answer


@pytest.mark.parametrize(
    "flag", [*OF_PROGRAMS, "--no-simplify", "--operators", "--dropout"]
)
@pytest.mark.parametrize("model", WEIGHTS)
def test_weights_refuse_options_of_programs(
    model: Callable[[], Path], flag: str
) -> None:
    name = flag.replace("--no-", "--")
    expected = f"{name}: expected a model with a program, got weights alone"
    assert expected in refused(flag, model())


@pytest.mark.parametrize("flag", ["--padding", "--pool"])
def test_options_of_sequential_models_need_an_activation(flag: str) -> None:
    answer = refused(flag, safetensors_file())
    assert f"{flag}: expected --activation as well, got none" in answer


def test_weights_without_nested_dicts_refuse_a_key() -> None:
    answer = run(safetensors_file(), "--top-level-key", "model", "-o", "out.py")
    assert answer.exit_code == 5 and "expected no top-level key" in answer.stderr


def test_sequential_models_refuse_what_has_no_effect() -> None:
    path = Path("layers.safetensors")
    linear = [("0.weight", np.ones((4, 3), np.float32)), ("0.bias", np.ones(4, "f4"))]
    write_record(path, [*linear, ("2.weight", np.ones((2, 4), np.float32))])
    relu = ("--activation", "relu", "-o", "out.py")
    assert run(path, *relu, "--dry-run").exit_code == 0
    config = run(path, *relu, "--config", "config.json")
    assert config.exit_code == 2
    assert "--config: expected weights of a known architecture" in config.stderr
    both = run(path, *relu, "--padding", "same", "--pool", "max")
    for flag in ("--padding", "--pool"):
        assert f"{flag}: expected weights with convolutions, got none" in both.stderr
    assert both.exit_code == 4 and not Path("out.py").exists()


@pytest.mark.parametrize(
    "flag", sorted(GIVEN.keys() - {"--top-level-key", "--shard-size"})
)
def test_records_refuse_options_of_modules(flag: str) -> None:
    answer = refused(flag, state_dict(), "new/out.safetensors")
    name = flag.replace("--no-", "--")
    assert f"{name}: expected a module as output, got a record" in answer
    assert not Path("new").exists()


def test_options_that_are_not_given_are_not_refused() -> None:
    assert given_options(Options(stem="net")) == []
    every = Options(hints=Hints(config="c"), passes=(), flat=True, standalone=True)
    assert given_options(every) == ["--simplify", "--flat", "--standalone", "--config"]


@pytest.mark.parametrize("model", [*PROGRAMS.values(), *WEIGHTS])
def test_files_are_imported_without_options(model: Callable[[], Path]) -> None:
    answer = run(model(), "-o", "out.py", "--dry-run")
    assert answer.exit_code == 0, answer.output
