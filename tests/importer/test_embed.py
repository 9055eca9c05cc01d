"""Records embedded in generated source (``--embed``)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest

import burn
from burn.record import RecordError
from burn_import import ModelGen, Options, load
from burn_import.build.models import bring_up_to_date, configured
from burn_import.output import OutputRefused
from burn_import.pipeline import import_model, write_model
from burn_import.status import status_of
from burn_import.transform import WrongOptions
from tests.cli.commands import run
from tests.importer.test_record_digest import (
    load as load_written,
    model_file,
    module_in,
)
from tests.modules import import_file
from tests.standalone import import_alone

W = np.array([1, 2, 3], np.float32)
X = np.stack([W, W])
Y = X * [0, 2, 4]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return model_file(tmp_path / "net.onnx", 2)


@pytest.fixture
def module(source: Path, tmp_path: Path) -> Path:
    """A module with an embedded record, and nothing beside it."""
    folder = tmp_path / "out"
    folder.mkdir()
    compiled = import_model(source, Options(embed=True, class_name="Net"))
    written = write_model(compiled, folder / "net.py")
    assert written.weights is None
    assert [path.name for path in folder.iterdir()] == ["net.py"]
    return written.module


def edited(module: Path, edit: Callable[[str], str]) -> None:
    module.write_text(edit(module.read_text("ascii")), "ascii")


def test_the_module_loads_its_own_weights(module: Path) -> None:
    net = load_written(module, verify=True)
    np.testing.assert_array_equal(net(burn.tensor(X)).numpy(), Y)
    assert status_of(module).problems == ()


def test_another_record_can_be_loaded(module: Path, tmp_path: Path) -> None:
    net = load_written(module)
    (key,) = net.state_dict()
    net.load_state_dict({key: burn.tensor(W)})
    net.save_weights(tmp_path / "tuned.safetensors")
    tuned = load_written(module, tmp_path / "tuned.safetensors")
    np.testing.assert_array_equal(tuned(burn.tensor(X)).numpy(), X * X)
    data = (tmp_path / "tuned.safetensors").read_bytes()
    np.testing.assert_array_equal(
        load_written(module, data)(burn.tensor(X)).numpy(), X * X
    )
    with pytest.raises(RecordError, match="bytes: expected the record that Net was"):
        load_written(module, data, verify=True)


def test_a_changed_record_is_noticed(module: Path) -> None:
    edited(module, lambda text: text.replace("AAAA", "AAAB"))
    assert status_of(module).problems == (
        "edited since it was written",
        "its embedded record was changed since",
    )
    with pytest.raises(RecordError, match="expected the record that Net was written"):
        load_written(module, verify=True)


def test_damaged_base64_is_reported_by_check(module: Path) -> None:
    edited(module, lambda text: text.replace("AAAA", "AAA", 1))
    assert "its embedded record is damaged" in status_of(module).problems[1]


def test_it_is_written_again_only_if_it_changed(source: Path, module: Path) -> None:
    again = import_model(source, Options(embed=True, class_name="Net"))
    assert not write_model(again, module).changed
    edited(module, lambda text: text + "# mine\n")
    with pytest.raises(OutputRefused, match="was edited since"):
        write_model(again, module)
    assert write_model(again, module, force=True).changed


def test_a_dry_run_shows_weights_and_no_base64(source: Path, module: Path) -> None:
    model_file(source, 3)
    result = run(source, "-o", module, "--embed", "--class-name", "Net", "--dry-run")
    assert "changed  w  float32[3]\n" in result.stdout
    assert "b64decode" not in result.stdout
    assert "AAAA" not in result.stdout


def test_large_weights_are_refused(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("burn_import.output.MAX_EMBEDDED", 11)
    result = run(source, "-o", tmp_path / "large.py", "--embed")
    assert result.exit_code == 2
    message = "--embed: expected weights of at most 11 bytes, got 12 bytes in 1 tensors"
    assert message in result.stderr
    assert "large.safetensors" in result.stderr
    assert not (tmp_path / "large.py").exists()


def test_modules_of_pytorch_refuse_it(source: Path) -> None:
    with pytest.raises(WrongOptions, match="--embed: expected the target burn"):
        import_model(source, Options(embed=True, target="torch"))


def test_standalone_modules_embed(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = Options(embed=True, standalone=True, class_name="Net")
    path = write_model(import_model(source, options), tmp_path / "alone.py").module
    assert not path.with_suffix(".safetensors").exists()
    alone = import_alone(path, monkeypatch)
    net = alone.Net.load(verify=True)
    np.testing.assert_array_equal(net(alone.tensor(X)).numpy(), Y)
    assert status_of(path).problems == ()
    assert run("diff", source, path).exit_code == 0


OWN_LOAD = """
    @classmethod
    def load(cls, weights: object = None, backend: object = None, *, verify=False):
        record = WEIGHTS if weights is None else weights
        return cls().load_weights(record, backend, verify=verify)
"""


@pytest.mark.parametrize("standalone", [False, True])
def test_files_with_a_load_of_their_own_are_compared(
    standalone: bool, source: Path, tmp_path: Path
) -> None:
    """Files of earlier versions have the record as a constant, which ``load`` reads."""
    options = Options(embed=True, standalone=standalone, class_name="Net")
    path = write_model(import_model(source, options), tmp_path / "old.py").module
    edited(path, lambda text: text.replace("Net.WEIGHTS = ", "WEIGHTS = "))
    edited(path, lambda text: text.replace("Net(Module):", f"Net(Module):{OWN_LOAD}"))
    edited(
        path, lambda text: text.replace("Net(nn.Module):", f"Net(nn.Module):{OWN_LOAD}")
    )
    answer = run("diff", source, path)
    assert (answer.exit_code, answer.stderr) == (0, "")
    flags = ["--embed", "--class-name", "Net", *["--standalone"] * standalone]
    assert run(source, "-o", path, "--force", *flags).exit_code == 0
    assert "\nNet.WEIGHTS = b64decode(" in path.read_text("ascii")


def test_it_loads_out_of_a_zip_file(module: Path, tmp_path: Path) -> None:
    with ZipFile(tmp_path / "app.pyz", "w") as archive:
        archive.write(module, "model.py")
    net: Any = module_in(tmp_path / "app.pyz").Net.load(verify=True)
    np.testing.assert_array_equal(net(burn.tensor(X)).numpy(), Y)


def test_models_in_memory_and_scripts_take_the_option(
    source: Path, tmp_path: Path
) -> None:
    net: Any = load(source, Options(embed=True))
    np.testing.assert_array_equal(net(burn.tensor(X)).numpy(), Y)
    job = ModelGen().input(source).out_dir(tmp_path / "gen")
    paths = job.options(Options(embed=True)).run_from_script()
    assert paths == [tmp_path / "gen" / "net.py"]


def entry(**more: Any) -> dict[str, Any]:
    return {"models": [{"input": "net.onnx", "output": "app/net.py", **more}]}


def test_the_build_hook_embeds(source: Path, tmp_path: Path) -> None:
    (model,) = configured(entry(embed=True), tmp_path)
    assert model.files == [tmp_path / "app" / "net.py"]
    bring_up_to_date(model)
    before = model.output.stat().st_mtime_ns
    bring_up_to_date(model)
    assert model.output.stat().st_mtime_ns == before
    assert not model.output.with_suffix(".safetensors").exists()
    source.unlink()  # as in a source distribution without the model
    assert bring_up_to_date(model) == []


def test_the_build_hook_follows_the_option(source: Path, tmp_path: Path) -> None:
    bring_up_to_date(configured(entry(embed=True), tmp_path)[0])
    (model,) = configured(entry(), tmp_path)
    bring_up_to_date(model)
    assert model.output.with_suffix(".safetensors").is_file()
    assert "b64decode" not in model.output.read_text()
    record = model.output.with_suffix(".safetensors")
    assert record == import_file(model.output).Net.WEIGHTS
