"""Export of a module by the inputs that it declares."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from burn_import.export.export import export_onnx
from burn_import.export.files import Exported
from burn_import.tracing.identifiers import strip_reserved_suffix
from burn_import.verification.inputs import (
    declared_types,
    random_inputs,
    stored_inputs,
)


def export_declared(
    model: Any,
    output: str | Path,
    *,
    inputs: Path | Mapping[str, Any] | None = None,
    fixed: bool = False,
    **options: Any,
) -> Exported:
    """Write a module as an ONNX file, with the extents it declares as dynamic ones.

    ``inputs`` are example arrays by name or a ``.npz`` file, else random ones of the
    declared types. The file calls the input ``input_`` of a module ``input``, as the
    original does. ``fixed`` fixes all extents to those of the example. ``options`` are
    further ones of ``export_onnx``.

    Raises:
        InputsError: the module declares no inputs, or the example lacks one.
        ExportError, OutputRefused: as ``export_onnx`` does.
    """
    types = declared_types(model)
    if isinstance(inputs, Path):
        example = stored_inputs(inputs, list(types))
    else:
        example = random_inputs(types) if inputs is None else dict(inputs)
    names = {
        strip_reserved_suffix(name): {
            a: str(n) for a, n in enumerate(shape) if str(n).isidentifier()
        }
        for name, (_, shape) in types.items()
    }
    options["dynamic"] = {} if fixed else names
    options["input_names"] = [strip_reserved_suffix(name) for name in example]
    return export_onnx(model, example, output, **options)
