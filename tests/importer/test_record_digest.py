"""The SHA-256 of its record in the header of a module: written, and verified."""

import hashlib
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any
from zipimport import zipimporter

import numpy as np
import pytest
from onnx import helper

import burn
from burn.record import RecordError, open_record, write_record
from burn_import.build.models import bring_up_to_date, configured
from burn_import.output import OutputRefused, read_header
from burn_import.pipeline import import_model, write_model
from burn_import.status import status_of
from tests.importer.onnx_files import graph, model, saved, stored
from tests.modules import import_file


def model_file(path: Path, factor: float = 1) -> Path:
    """Return the file of a model y = x * w."""
    weight = stored("w", factor * np.arange(3, dtype=np.float32))
    node = helper.make_node("Mul", ["x", "w"], ["y"])
    saved(path, model(graph([node], initializers=(weight,))))
    return path


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A generated module of a class Model."""
    source = model_file(tmp_path / "model.onnx")
    return write_model(import_model(source), tmp_path / "model.py").module


def load(module: Path, *args: Any, **options: Any) -> Any:
    """Return the model of a generated module."""
    (name,) = [
        line.split("(")[0].removeprefix("class ")
        for line in module.read_text().splitlines()
        if line.startswith("class ")
    ]
    return getattr(import_file(module), name).load(*args, **options)


def module_in(folder: Path) -> Any:
    """Return the module ``model`` of a folder inside a zip file."""
    spec = zipimporter(str(folder)).find_spec("model")
    assert spec is not None and spec.loader is not None
    loaded = module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def flip(record: Path, at: int = -1) -> None:
    """Change one bit of a record."""
    data = bytearray(record.read_bytes())
    data[at] ^= 1
    record.write_bytes(data)


def test_the_header_has_the_digest_of_the_record(module: Path) -> None:
    digests = read_header(module)
    record = module.with_suffix(".safetensors").read_bytes()
    assert digests is not None
    assert digests.record == hashlib.sha256(record).hexdigest()
    assert status_of(module).problems == ()


def test_load_verifies_when_asked(module: Path) -> None:
    record = module.with_suffix(".safetensors")
    net = load(module, verify=True)
    np.testing.assert_array_equal(
        net(burn.tensor(np.ones((2, 3), "f4"))).numpy(), [[0, 1, 2]] * 2
    )
    del net
    flip(record)
    load(module)  # the header of the record is sound, and nobody asked
    with pytest.raises(RecordError, match="model.safetensors: expected the record"):
        load(module, verify=True)


def test_trained_weights_load_from_another_file(module: Path, tmp_path: Path) -> None:
    other = tmp_path / "tuned.safetensors"
    net = load(module)
    net.load_state_dict({k: v.numpy() * 2 for k, v in net.state_dict().items()})
    net.save_weights(other)
    tuned = load(module, other)
    np.testing.assert_array_equal(
        tuned(burn.tensor(np.ones((2, 3), "f4"))).numpy(), [[0, 2, 4]] * 2
    )
    assert status_of(module).problems == ()
    load(module, verify=True)
    with pytest.raises(RecordError, match="trained since"):
        load(module, other, verify=True)


def test_a_class_without_header_has_nothing_to_verify_with(tmp_path: Path) -> None:
    net = burn.nn.Linear(2, 2)
    net.save_weights(tmp_path / "x.safetensors")
    with pytest.raises(RecordError, match="nothing to verify it with"):
        net.load_weights(tmp_path / "x.safetensors", verify=True)


def test_check_sees_one_bit_between_the_samples(tmp_path: Path) -> None:
    weight = stored("w", np.ones((2**18, 2, 3), np.float32))
    node = helper.make_node("Mul", ["x", "w"], ["y"])
    source = tmp_path / "large.onnx"
    saved(source, model(graph([node], initializers=(weight,))))
    module = write_model(import_model(source), tmp_path / "large.py").module
    flip(module.with_suffix(".safetensors"), -5000)  # the fingerprint does not see it
    assert status_of(module).problems == ("large.safetensors was changed since",)


def test_modules_without_the_line_are_read(module: Path) -> None:
    lines = module.read_text().splitlines(keepends=True)
    assert lines[2].startswith("# record sha256 ")
    module.write_text("".join([*lines[:2], *lines[3:]]))
    digests = read_header(module)
    assert digests is not None and digests.record is None
    assert digests.body == digests.actual
    assert status_of(module).problems == ()
    with pytest.raises(RecordError, match="import the model again"):
        load(module, verify=True)
    write_model(import_model(module.with_name("model.onnx")), module)
    assert module.read_text() == "".join(lines)


def test_the_hook_sees_damage(module: Path, tmp_path: Path) -> None:
    table = {"models": [{"input": "model.onnx", "output": "net.py"}]}
    (entry,) = configured(table, tmp_path)
    assert bring_up_to_date(entry) == []
    assert entry.record is not None
    flip(entry.record)
    with pytest.raises(OutputRefused, match="did not write"):
        bring_up_to_date(entry)
    entry.input.unlink()
    with pytest.raises(OutputRefused, match="damaged or of another model"):
        bring_up_to_date(entry)


def test_another_layout_of_the_same_weights_is_replaced(module: Path) -> None:
    record = module.with_suffix(".safetensors")
    before = record.read_bytes()
    tensors = {name: array.copy() for name, array in open_record(record).items()}
    write_record(record, tensors.items(), {"by": "somebody"})
    compiled = import_model(module.with_name("model.onnx"))
    assert write_model(compiled, module).changed
    assert record.read_bytes() == before
    assert not write_model(compiled, module).changed


def test_a_module_of_another_name_loads_its_own_record(
    module: Path, tmp_path: Path
) -> None:
    compiled = import_model(module.with_name("model.onnx"))
    other = tmp_path / ("another_" * 6 + "name.py")
    assert write_model(compiled, other).weights == other.with_suffix(".safetensors")
    module.with_suffix(".safetensors").unlink()
    net = load(other, verify=True)
    np.testing.assert_array_equal(
        net(burn.tensor(np.ones((2, 3), "f4"))).numpy(), [[0, 1, 2]] * 2
    )
    from burn_import.options import Options

    options = Options(stem=other.stem, class_name=compiled.class_name)
    same = import_model(module.with_name("model.onnx"), options)
    body = other.read_text().split("\n\n\n", 1)[0].splitlines()[4:]
    assert body == same.text.split("\n\n\n", 1)[0].splitlines()


def test_a_record_inside_a_zip_is_loaded(module: Path, tmp_path: Path) -> None:
    from zipfile import ZIP_DEFLATED, ZipFile

    archive = tmp_path / "app.pyz"
    with ZipFile(archive, "w", ZIP_DEFLATED) as file:
        file.write(module, "app/model.py")
        file.write(module.with_suffix(".safetensors"), "app/model.safetensors")
        file.write(module, "alone/model.py")
    cls: Any = module_in(archive / "app").Model
    for options in ({}, {"verify": True}, {"verify": False}):
        np.testing.assert_array_equal(
            cls.load(**options)(burn.tensor(np.ones((2, 3), "f4"))).numpy(),
            [[0, 1, 2]] * 2,
        )
    with pytest.raises(FileNotFoundError, match="no record of Model"):
        module_in(archive / "alone").Model.load()


def test_a_bomb_in_a_zip_is_refused(module: Path, tmp_path: Path) -> None:
    from zipfile import ZIP_DEFLATED, ZipFile

    archive = tmp_path / "bomb.zip"
    with ZipFile(archive, "w", ZIP_DEFLATED) as file:
        file.writestr("x.safetensors", bytes(65 << 20))
    with pytest.raises(RecordError, match="expected at most 20 times"):
        load(module, archive / "x.safetensors")


def test_a_missing_record_is_named_with_the_remedy(module: Path) -> None:
    module.with_suffix(".safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"Copy it along.*model\.safetensors"):
        load(module)
