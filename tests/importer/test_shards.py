"""Generated modules whose records are written in shards (``--shard-size``)."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn.record import RecordError, open_stored
from burn_import import Options
from burn_import.build.models import Model, bring_up_to_date, configured
from burn_import.output import OutputRefused
from burn_import.pipeline import import_model, write_model
from burn_import.status import status_of
from tests.cli.commands import run
from tests.modules import import_file
from tests.test_house import ROOT

DIGITS = ROOT / "models" / "digits" / "digits.onnx"
#: The weights have 40 296 bytes, of which one matrix has 20 480.
SIZE = "20KB"


@pytest.fixture
def module(tmp_path: Path) -> Path:
    module = tmp_path / "app" / "net.py"
    result = run(DIGITS, "-o", module, "--shard-size", SIZE, "--class-name", "Net")
    assert result.exit_code == 0, result.stderr
    shards = [module.with_name(f"net-0000{i}-of-00003.safetensors") for i in (1, 2, 3)]
    index = module.with_name("net.safetensors.index.json")
    lines = [f"wrote {path}" for path in (module, index, *shards)]
    assert result.stdout.splitlines() == lines
    assert sorted(module.parent.iterdir()) == sorted([module, index, *shards])
    return module


def load(module: Path, **options: Any) -> Any:
    return import_file(module).Net.load(**options)


def test_the_module_finds_its_shards(module: Path) -> None:
    net = load(module, verify=True)
    assert run("verify", DIGITS, "--module", module).exit_code == 0
    images = burn.tensor(np.zeros((1, 1, 8, 8), np.float32))
    assert net(images).shape == (1, 10)
    assert status_of(module, DIGITS).problems == ()


def test_shards_are_checked(module: Path) -> None:
    shard = module.with_name("net-00002-of-00003.safetensors")
    data = bytearray(shard.read_bytes())
    data[-1] ^= 1
    shard.write_bytes(data)
    with pytest.raises(RecordError, match="00002-of-00003.safetensors: expected the"):
        load(module, verify=True)
    (problem,) = status_of(module).problems
    assert "is damaged" in problem
    assert shard.name in problem
    shard.unlink()
    (problem,) = status_of(module).problems
    assert f"'{shard.name}': there is no such file" in problem
    with pytest.raises(RecordError, match="no such file beside the index"):
        load(module)


def test_a_changed_index_is_noticed(module: Path) -> None:
    index = module.with_name("net.safetensors.index.json")
    content = json.loads(index.read_text())
    del content["metadata"]["sha256"]
    index.write_text(json.dumps(content))
    assert status_of(module).problems == (f"{index.name} was changed since",)
    with pytest.raises(RecordError, match="expected the record that Net was written"):
        load(module, verify=True)


def test_it_is_written_again_only_if_it_changed(module: Path) -> None:
    compiled = import_model(DIGITS, Options(class_name="Net", shard_size=20_000))
    assert not write_model(compiled, module).changed
    whole = import_model(DIGITS, Options(class_name="Net"))
    dry = write_model(whole, module, dry_run=True)
    assert dry.changed
    assert dry.changes is not None
    assert dry.changes.weights == ()


def test_trained_shards_are_not_replaced(module: Path) -> None:
    net = load(module)
    net.head.linear.bias.set(net.head.linear.bias.value + 1)
    net.save_weights(module.with_suffix(".safetensors"), shard_size=SIZE)
    assert status_of(module).problems == (
        "net.safetensors.index.json was changed since",
    )
    other = import_model(DIGITS, Options(class_name="Net", shard_size=20_000))
    with pytest.raises(OutputRefused, match="holds weights that burn-import did not"):
        write_model(other, module)


def entry(folder: Path) -> Model:
    row = {"input": "net.onnx", "output": "app/net.py", "shard-size": SIZE}
    return configured({"models": [row]}, folder)[0]


def test_the_build_hook_writes_shards(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(DIGITS.read_bytes())
    model = entry(tmp_path)
    bring_up_to_date(model)
    assert [path.name for path in model.files] == [
        "net.py",
        "net.safetensors.index.json",
        "net-00001-of-00003.safetensors",
        "net-00002-of-00003.safetensors",
        "net-00003-of-00003.safetensors",
    ]
    before = model.output.stat().st_mtime_ns
    bring_up_to_date(model)
    assert model.output.stat().st_mtime_ns == before
    model.files[2].unlink()
    bring_up_to_date(model)
    assert model.files[2].is_file()
    (tmp_path / "net.onnx").unlink()
    assert bring_up_to_date(model) == []
    damaged = bytearray(model.files[2].read_bytes())
    damaged[-1] ^= 1
    model.files[2].write_bytes(damaged)
    with pytest.raises(OutputRefused, match="does not have the SHA-256 in the header"):
        bring_up_to_date(model)


def test_commands_take_shards(module: Path, tmp_path: Path) -> None:
    record = module.with_suffix(".safetensors")
    listed = run("weights", record)
    assert listed.exit_code == 0, listed.output
    assert "head.linear.bias" in listed.stdout
    for path in (record, module.with_name("net.safetensors.index.json")):
        new = tmp_path / "new.onnx"
        done = run("update", DIGITS, "--weights", path, "-o", new, "--force")
        assert done.exit_code == 0, done.output
        done = run("export", module, "--weights", path, "-o", new, "--force")
        assert done.exit_code == 0, done.output
    assert run("diff", module, DIGITS).exit_code == 0


def test_weights_are_converted_to_shards(module: Path, tmp_path: Path) -> None:
    load(module).save_weights(tmp_path / "one.safetensors")
    output = tmp_path / "many.safetensors"
    args = (tmp_path / "one.safetensors", "-o", output, "--shard-size", SIZE)
    result = run(*args)
    assert result.exit_code == 0, result.stderr
    assert "wrote" in result.stdout
    assert "many-00003-of-00003.safetensors" in result.stdout
    assert set(open_stored(output)) == set(open_stored(tmp_path / "one.safetensors"))
    assert "unchanged" in run(*args).stdout
    assert "wrote" in run(*args[:3]).stdout  # in one file


@pytest.mark.parametrize(
    "flags", [("--standalone",), ("--embed",), ("--target", "torch")]
)
def test_modules_of_one_file_refuse_the_option(
    flags: tuple[str, ...], tmp_path: Path
) -> None:
    result = run(DIGITS, "-o", tmp_path / "net.py", "--shard-size", SIZE, *flags)
    assert result.exit_code == 2
    assert "--shard-size: expected the target burn, and neither --embed nor" in (
        result.stderr
    )


def test_a_wrong_size_is_refused(tmp_path: Path) -> None:
    result = run(DIGITS, "-o", tmp_path / "net.py", "--shard-size", "5 cm")
    assert result.exit_code == 2
    assert "expected a size of shards in bytes, such as 5GB" in result.stderr
    row = {"input": "net.onnx", "output": "net.py", "shard-size": [5]}
    with pytest.raises(ValueError, match="shard-size: expected a size as text"):
        configured({"models": [row]}, tmp_path)
