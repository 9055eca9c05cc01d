"""Entry point of the ONNX reader: a model, or one error that explains the file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from burn.record import HEAD_SIZE, describe_foreign
from burn_import.file_kinds import FileKind, head_kind
from burn_import.foreign import AGAIN, kind_by_name
from burn_import.frontends.onnx.dims import DimNames
from burn_import.frontends.onnx.files import ExternalFiles, map_file
from burn_import.frontends.onnx.functions import Functions
from burn_import.frontends.onnx.graphs import (
    GraphReader,
    declared_input,
    dim_params,
    domain_of,
)
from burn_import.frontends.onnx.tensors import Tensors
from burn_import.frontends.onnx.walk import tensors_of
from burn_import.frontends.onnx.wire import without_raw_data
from burn_import.provenance.axis_names import axis_name, is_counted
from burn_ir import (
    InvalidModel,
    ModelError,
    RawModel,
    Type,
    UnreadableFile,
    UnsupportedModel,
)

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto


def read(path: str | Path) -> RawModel:
    """Read an ONNX file of any IR version.

    Weights are read-only views of the file, which stays mapped while one of them is in
    use. Functions are inlined; a missing ``opset_import`` means version 1.

    Raises:
        UnreadableFile: the file, or an external file, cannot be read or is not ONNX.
        InvalidModel: the model violates the specification; all violations are listed.
        UnsupportedModel: it uses a dtype or a kind of input that is not supported.
    """
    path = Path(path)
    file = map_file(path)
    refuse_foreign(bytes(file[:HEAD_SIZE]), path)
    try:
        return _model(_parsed(file, path), file, path)
    except UnreadableFile as error:
        raise error.in_file(path.name) from error


def _parsed(file: memoryview, path: Path) -> ModelProto:
    """Return the message of a file; refuse files whose suffix is of another format."""
    try:
        proto = _parse(file)
        if not proto.HasField("graph"):
            raise UnreadableFile("expected an ONNX model, found no graph in it", AGAIN)
        return proto
    except (UnreadableFile, InvalidModel) as error:
        named = kind_by_name(path)
        if named is None:
            raise
        message = f"expected an ONNX model; by its name this is a {named.kind}"
        raise UnreadableFile(message, named.remedy) from error


def external_locations(path: Path) -> list[str]:
    """Return the relative paths of the files with a model's external data.

    Raises:
        UnreadableFile: the file cannot be read or is not ONNX.
        InvalidModel: it is not a valid message.
    """
    file = map_file(path)
    if b"location" not in without_raw_data(file):
        return []
    proto = _parse(file)
    entries = (
        entry
        for tensor in tensors_of(proto)
        if tensor.data_location == tensor.EXTERNAL
        for entry in tensor.external_data
    )
    return list(dict.fromkeys(e.value for e in entries if e.key == "location"))


def refuse_foreign(head: bytes, path: Path) -> None:
    """Check that a file that begins with ``head`` may be an ONNX model.

    Raises:
        UnreadableFile: the file has another known format; the message gives the remedy.
    """
    foreign = describe_foreign(head)
    if foreign is not None and head_kind(foreign) is not FileKind.ONNX:
        raise UnreadableFile(
            f"{path.name}: expected an ONNX model, got this: {foreign.kind}",
            foreign.remedy,
        )


def _parse(file: memoryview) -> ModelProto:
    from google.protobuf.message import DecodeError
    from onnx import ModelProto

    stripped = without_raw_data(file)
    try:
        model = ModelProto()
        model.ParseFromString(stripped)
        return model
    except DecodeError as error:
        raise UnreadableFile(
            "expected an ONNX model, but its protobuf messages are malformed; the file "
            f"is damaged or of another kind ({error})",
            AGAIN,
        ) from error


def input_types(proto: ModelProto) -> dict[str, Type]:
    """Return the declared types of the inputs of the main graph, by name.

    Extents have the names that they have in an imported module. Inputs with a stored
    value, and those that are no tensors or have no type, are left out.
    """
    stored = {tensor.name for tensor in proto.graph.initializer}
    dims = _dim_names(proto)
    return {
        value.name: declared_input(value, dims)
        for value in proto.graph.input
        if value.name not in stored and value.type.tensor_type.elem_type
    }


def _dim_names(proto: ModelProto) -> DimNames:
    dims = DimNames()
    for text in dim_params(proto.graph):
        dims.reserve(text)
    _name_axes(dims, proto.graph)
    return dims


def _model(proto: ModelProto, file: memoryview, path: Path) -> RawModel:
    reader = GraphReader(
        Tensors(file, ExternalFiles(path)),
        _dim_names(proto),
        _opsets(proto),
        Functions(proto),
        proto.ir_version,
    )
    graph = reader.main(proto.graph)
    _raise(reader.problems)
    producer = f"{proto.producer_name} {proto.producer_version}".strip()
    return RawModel(graph, reader.opsets, producer)


def _name_axes(dims: DimNames, proto: GraphProto) -> None:
    """Rename symbols with exporter counters (``s77``) after their first axis."""
    for value in proto.input:
        shape = value.type.tensor_type.shape.dim
        fixed = [dim.HasField("dim_value") for dim in shape]
        for axis, dim in enumerate(shape):
            name = axis_name(axis, fixed) if is_counted(dim.dim_param) else ""
            if name:
                dims.call(dim.dim_param, name)


def _opsets(proto: ModelProto) -> dict[str, int]:
    opsets: dict[str, int] = {}
    for entry in proto.opset_import:
        domain = domain_of(entry.domain)
        if opsets.setdefault(domain, entry.version) != entry.version:
            raise InvalidModel(
                f"expected one version of domain {domain!r}, got {opsets[domain]} "
                f"and {entry.version}"
            )
    return opsets or {"": 1}


def _raise(problems: list[ModelError]) -> None:
    """Raise one error for all problems; unreadable files take precedence."""
    for kind in (UnreadableFile, InvalidModel, UnsupportedModel):
        if any(isinstance(problem, kind) for problem in problems):
            raise kind([p for problem in problems for p in problem.problems])
