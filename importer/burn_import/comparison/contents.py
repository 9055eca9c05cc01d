"""The compared properties of a model, read from a file or from a module."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from burn_import.comparison.nodes import NodeFacts
    from burn_import.pipeline import Compiled
    from burn_ir import RawModel
    from burn_ir.types import Array


@dataclass(frozen=True)
class Contents:
    """The compared properties of a model; None where the file kind has none.

    ``layers`` has the class of each owner of weights by path, "" where it is not
    known. ``weights`` are memory-mapped where the file allows it.
    """

    weights: Mapping[str, Array]
    layers: Mapping[str, str]
    inputs: Mapping[str, str] | None = None
    outputs: Mapping[str, str] | None = None
    opsets: Mapping[str, int] | None = None
    operators: Mapping[str, int] | None = None
    nodes: Mapping[str, NodeFacts] | None = None

    @property
    def is_module(self) -> bool:
        """Whether this is a generated class, whose results have no names."""
        return self.inputs is not None and self.outputs is None


def file_contents(path: Path) -> Contents:
    """Return the contents of a record, a checkpoint, or a model with a program.

    Raises:
        UnreadableFile, UnsupportedModel, InvalidModel: of the file.
    """
    from burn_import.file_kinds import FileKind, file_kind
    from burn_import.pipeline import import_model
    from burn_import.sources import read
    from burn_import.weights import is_record_name, opened
    from burn_ir import RawModel

    kind = file_kind(path)
    if is_record_name(path) or kind is FileKind.WEIGHTS:
        weights = dict(opened(path).weights)
        return Contents(weights, dict.fromkeys(_owners(weights), ""))
    compiled = import_model(path)
    raw = read(path)
    assert isinstance(raw, RawModel)  # not a file of weights
    return _program_contents(raw, compiled, kind is FileKind.ONNX)


def _program_contents(raw: RawModel, compiled: Compiled, has_opsets: bool) -> Contents:
    from burn_import.comparison.nodes import node_facts, operator_counts
    from burn_ir import build

    graph = build(raw)
    weights = dict(compiled.weights)
    return Contents(
        weights,
        _layer_classes(weights, _instance(compiled)),
        {name: graph.types[name].name for name in graph.arguments},
        {name: str(getattr(graph.type(name), "name", "?")) for name in graph.results},
        (
            {name or "ai.onnx": n for name, n in raw.opsets.items()}
            if has_opsets
            else None
        ),
        operator_counts(raw),
        node_facts(raw),
    )


def module_contents(module: Any) -> Contents:
    """Return the contents of an instance of a generated class.

    A standalone class has no state by key, so the record that it loads is read.
    """
    from burn.record import record_of_bytes

    inputs = getattr(type(module).__call__, "input_types", None)
    if not hasattr(module, "state_dict"):
        written = sys.modules[type(module).__module__]
        # Files written before ``Module.load`` have the record as a constant.
        stored = getattr(type(module), "WEIGHTS", None) or written.WEIGHTS
        if isinstance(stored, bytes):
            weights = dict(record_of_bytes(stored))
            return Contents(weights, dict.fromkeys(_owners(weights), ""), inputs)
        return replace(file_contents(stored), inputs=inputs)
    weights = {key: value.numpy() for key, value in module.state_dict().items()}
    return Contents(weights, _layer_classes(weights, module), inputs)


def _instance(compiled: Compiled) -> Any:
    """Return an instance of a compiled module's class, without weight values."""
    from burn.nn.init import separate_seeds
    from burn_import.instantiate import execute

    module = ModuleType("burn_import.compared")
    module.__file__ = f"<{module.__name__}>"
    execute(compiled.text, module)
    with separate_seeds():
        return getattr(module, compiled.class_name)()


def _layer_classes(weights: Mapping[str, Array], module: Any) -> dict[str, str]:
    """Return the class of each owner of weights that is a library layer.

    Generated class names are left out, since they depend on the rest of the model.
    """
    classes = {path: type(layer) for path, layer in module.modules()}
    return {
        path: (
            kind.__name__
            if (kind := classes.get(path)) and kind.__module__.startswith("burn.nn")
            else ""
        )
        for path in _owners(weights)
    }


def _owners(weights: Mapping[str, Array]) -> list[str]:
    return list(dict.fromkeys(key.rpartition(".")[0] for key in weights))
