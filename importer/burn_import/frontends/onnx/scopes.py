"""Module path of a node, from the exporter's metadata or the node's name."""

import ast
from collections.abc import Mapping

from burn_import.provenance.path_segments import without_lookups
from burn_ir.graph import ROOT_SCOPE

NAME_SCOPES = "pkg.torch.onnx.name_scopes"
CLASS_HIERARCHY = "pkg.torch.onnx.class_hierarchy"

_LONGEST = 10_000


def scope_of(
    name: str, metadata: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the path of a node's module, and the classes along it.

    The path consists of attributes (``("encoder", "layer", "0")``) and is empty if the
    file does not record it. If the exporter recorded classes, ``classes`` has one entry
    for each segment, ``""`` for a segment that is no module itself (a list). PyTorch
    records both in the metadata; its older exporter, Keras and tf2onnx write the path
    into the node's name, ``/encoder/layer.0/MatMul``.
    """
    scopes = _strings(metadata.get(NAME_SCOPES, "")) if metadata else []
    if scopes:
        return _from_metadata(scopes, _strings(metadata.get(CLASS_HIERARCHY, "")))
    return _from_name(name), ()


def _from_name(name: str) -> tuple[str, ...]:
    """Return the path in a node's name, without repeated list names.

    ``/stages/stages.0/conv/Conv`` is ``stages.0.conv``. TensorFlow Lite joins the names
    of fused operators, the last operator first: ``conv/Relu;bn/add``.
    """
    name = name.partition(";")[0]
    if "/" not in name:
        return ()
    if not name.startswith("/"):  # dots in TensorFlow's names are no separators
        return tuple(filter(None, name.split("/")[:-1]))
    path: list[str] = []
    before = ""
    for part in name.split("/")[:-1]:
        inner = part.removeprefix(f"{before}.") if before else part
        path += [segment for segment in inner.split(".") if segment]
        before = part
    return tuple(path)


def _from_metadata(
    scopes: list[str], classes: list[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if scopes[0] != "" or len(scopes) < 2:
        return (), ()  # inserted by the exporter, in no module
    modules = scopes[:-1]  # the last segment is the node itself
    path = _segments(modules[-1])
    if not path:
        return ROOT_SCOPE, ()
    if len(classes) < len(modules):
        return path, ()
    along = [""] * (len(path) + 1)
    for module, cls in zip(modules, classes, strict=False):
        segments = _segments(module)
        if segments == path[: len(segments)]:
            along[len(segments)] = cls.rpartition(".")[2]
    return path, tuple(along[1:])  # drop the root


def _segments(module: str) -> tuple[str, ...]:
    return tuple(filter(None, without_lookups(module).split(".")))


def _strings(text: str) -> list[str]:
    """Parse ``text`` as a list literal of strings; return [] if it is none."""
    if not text.startswith("[") or len(text) > _LONGEST:
        return []
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return []
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    return []
