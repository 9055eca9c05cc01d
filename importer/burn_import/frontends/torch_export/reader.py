"""Entry point: the model in an archive of ``torch.export.save``."""

from pathlib import Path
from typing import Any

from burn.record.errors import shown
from burn_import.frontends.checkpoints.limits import LIMITS, Limits
from burn_import.frontends.checkpoints.zip_archive import Zip
from burn_import.frontends.onnx.files import map_file
from burn_import.frontends.torch_export.pytrees import PROGRAM, check
from burn_import.frontends.torch_export.schema import MAJOR
from burn_import.frontends.torch_export.signature import Program
from burn_import.frontends.torch_export.symbolic_extents import export_range_note
from burn_import.frontends.torch_export.weights import StoredTensors, json_in
from burn_ir import ModelError, RawModel, UnreadableFile, UnsupportedModel

_FORMAT = b"pt2"


def read(
    path: str | Path, *, restores_dropout: bool = False, limits: Limits = LIMITS
) -> RawModel:
    """Return the model in an exported program (``.pt2``), without PyTorch.

    Weights are read-only views of the file. Pickles in the archive (sample inputs) are
    not read, and nothing in the file is executed. With ``restores_dropout`` dropout of
    a program for inference is written too.

    Raises:
        UnreadableFile: the file is damaged, or no such archive.
        UnsupportedModel: the program has unsupported calls; all are listed.
        InvalidModel: it contradicts its schema.
    """
    path = Path(path)
    try:
        return _read(map_file(path), limits, restores_dropout)
    except ModelError as error:
        raise error.in_file(path.name) from error


def _read(data: memoryview, limits: Limits, restores_dropout: bool) -> RawModel:
    archive = Zip(data, limits)
    folder = archive.folder()
    name = f"{folder}/archive_format"
    if name not in archive.entries or bytes(archive.read(name)).strip() != _FORMAT:
        raise UnreadableFile("expected an exported program (.pt2), got another archive")
    order = f"{folder}/byteorder"
    if order in archive.entries and bytes(archive.read(order)).strip() != b"little":
        raise UnsupportedModel("expected a program of little-endian tensors")
    content = json_in(archive, _model(archive, f"{folder}/models/"))
    check(content, {"schema_version": PROGRAM["schema_version"]})
    version = content["schema_version"]["major"]
    if version != MAJOR:
        raise UnsupportedModel(
            f"expected a program of schema {MAJOR}, got {version}: export it with a "
            "version of PyTorch from 2.9 on"
        )
    check(content, PROGRAM)
    stored = StoredTensors(archive, folder)
    program = Program(content, stored, restores_dropout=restores_dropout)
    graph = program.graph()
    notes = export_range_note(program.symbols, content.get("range_constraints"))
    return RawModel(graph, _opsets(), _producer(content), (*notes, *program.notes))


def _opsets() -> dict[str, int]:
    from burn_import.frontends.torch_export.builder import OPSETS

    return dict(OPSETS)


def _producer(content: Any) -> str:
    version = content.get("torch_version")
    return f"pytorch {version}" if isinstance(version, str) else "pytorch"


def _model(archive: Zip, folder: str) -> str:
    """Return the entry of the program; of several, the one called ``model``."""
    paths = [
        name
        for name in archive.entries
        if name.startswith(folder) and name.endswith(".json")
    ]
    if f"{folder}model.json" in paths:
        return f"{folder}model.json"
    if len(paths) != 1:
        names = [name.removeprefix(folder) for name in paths]
        raise UnsupportedModel(f"expected one program, got {shown(names)}")
    return paths[0]
