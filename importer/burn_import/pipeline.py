"""The import pipeline: from a model file to its module and weights."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from burn_import.collector import uncollected
from burn_import.model_files import source_sha256
from burn_import.options import Options
from burn_import.output import Written, hides_module, write_module
from burn_import.tracing.identifiers import symbol_name

if TYPE_CHECKING:
    from burn_import.codegen.gate.allowed import Rules
    from burn_import.codegen.module.module import Assembly
    from burn_import.compiler import Source
    from burn_import.frontends.checkpoints import Checkpoint
    from burn_ir import RawModel
    from burn_ir.types import Array


@dataclass(frozen=True)
class Compiled:
    """A module as text without its header, its weights by key, and its origin.

    ``notes`` are docstring sentences about facts missing in the file, ``stem`` is
    the name of the module's file, ``target`` the library that it is written for.
    ``standalone`` is whether the used parts of the runtime are copied into its
    file, ``embed`` whether the weights are. Larger records than ``shard_size`` bytes
    are written in several files.
    """

    text: str
    weights: list[tuple[str, Array]]
    class_name: str
    origin: str
    source_sha256: str
    notes: tuple[str, ...] = ()
    stem: str = ""
    target: str = "burn"
    standalone: bool = False
    embed: bool = False
    shard_size: int | None = None


def import_model(source: str | Path, options: Options | None = None) -> Compiled:
    """Return the compiled module of the model in ``source``.

    Raises:
        WrongOptions: the options contradict each other or the model.
        UnreadableFile: ``source`` cannot be read as a model.
        UnsupportedModel: it uses unsupported features; all are listed.
        InvalidModel: it contradicts itself or the specification.
        InternalError: a defect of the importer, with a possible remedy.
    """
    path = Path(source)
    options = options or Options()
    with uncollected():
        options = _complete_options(path, options)
        module, versions = _compile_file(path, options)
    mark = f"options {options.mark}" if options.mark else ""
    shown = [versions[0], mark, versions[1]]
    return Compiled(
        module.text,
        module.weights,
        module.class_name,
        f"{path.name} ({', '.join(v for v in shown if v)})",
        source_sha256(path, options.hints.config),
        module.notes,
        options.stem or "",
        options.target,
        standalone=options.standalone,
        embed=options.embed,
        shard_size=options.largest_file,
    )


def _complete_options(path: Path, options: Options) -> Options:
    """Return ``options`` with missing names filled in; load their operators."""
    from burn_import.operators import load_operators
    from burn_import.transform import check_options

    check_options(options)
    options = replace(options, stem=options.stem or module_stem(path))
    load_operators(options.operators)
    return replace(options, class_name=options.class_name or options.stem)


def _compile_file(path: Path, options: Options) -> tuple[Source, tuple[str, str]]:
    """Return the module of a file, the opset it is written in, and its producer."""
    from burn_import.codegen.gate.gate import check_body
    from burn_import.compiler import compile_graph
    from burn_import.instantiate import check_record
    from burn_import.internal import defects
    from burn_import.skeleton import skeleton_of
    from burn_import.transform import prepared
    from burn_ir import RawModel, UnsupportedModel

    raw, opset = _read_model(path, options)
    if isinstance(raw, RawModel):
        graph, notes = prepared(raw, options), (raw.notes, raw.inside)
        emit = partial(compile_graph, graph, options, options.weights, *notes)
    elif options.target != "burn":
        raise UnsupportedModel(
            f"expected a model with a program for the target {options.target}, got "
            "weights alone"
        )
    else:
        emit = partial(skeleton_of, raw, options)
    with defects("" if options.flat else "try --flat, which writes one class"):
        module = emit()
        if options.target == "burn":
            check_record(module.text, module.class_name, module.weights)
        else:  # its classes with their fields in Burn stand for it
            check_record(module.skeleton, module.class_name, module.skeleton_weights)
            check_body(module.text.encode("ascii"), rules_of(options.target))
    return module, (opset, raw.producer)


def assemble_model(source: str | Path) -> Assembly:
    """Return the module tree of the model in ``source``, with its stored arrays.

    Raises:
        UnreadableFile, UnsupportedModel, InvalidModel: as ``import_model`` does.
    """
    from burn_import.codegen.module.module import assemble
    from burn_import.compiler import module_tree, simplified
    from burn_import.internal import defects
    from burn_import.transform import prepared
    from burn_ir import RawModel, UnsupportedModel

    path = Path(source)
    with uncollected():
        options = _complete_options(path, Options())
        raw, _ = _read_model(path, options)
        if not isinstance(raw, RawModel):
            raise UnsupportedModel(
                f"{path.name} has weights and no program; see `weights`"
            )
        graph = prepared(raw, options)
        with defects(""):
            graph = simplified(graph, options)
            return assemble(module_tree(graph, options), graph, raw.inside)


def rules_of(target: str) -> Rules:
    """Return the constructs that the source check allows for ``target``."""
    from burn_import.codegen.gate.allowed import BURN_RULES

    if target != "torch":
        return BURN_RULES
    from burn_import.codegen.torch.rules import TORCH_RULES

    return TORCH_RULES


def _read_model(path: Path, options: Options) -> tuple[RawModel | Checkpoint, str]:
    """Return the model in a file, and its opset."""
    from burn_import.file_kinds import FileKind, file_kind
    from burn_import.operators import load_operators_for
    from burn_import.sources import read
    from burn_import.transform import check_applicable
    from burn_ir import RawModel

    read_file = partial(read, path, options.hints, options.shapes)
    raw = read_file(restores_dropout=options.dropout)
    if isinstance(raw, RawModel) and load_operators_for(raw):
        raw = read_file(restores_dropout=options.dropout)  # with inlined functions
    kind = file_kind(path)
    check_applicable(kind, options)
    if kind is not FileKind.ONNX or not isinstance(raw, RawModel):
        return raw, ""
    return raw, f"opset {raw.opsets.get('', 1)}"


def module_stem(model: Path) -> str:
    """Return the file name of a model as an identifier."""
    stem = symbol_name(model.stem, "model")
    return f"{stem}_model" if hides_module(stem) else stem


def write_model(
    compiled: Compiled,
    output: str | Path,
    *,
    force: bool = False,
    dry_run: bool = False,
) -> Written:
    """Write the module at ``output`` and its weights beside it, or in it.

    The weights are written first, so that a module never refers to missing weights.
    Unchanged files are not touched. ``dry_run`` checks and writes nothing.

    Raises:
        UnsupportedModel: a standalone module would need more than NumPy.
        OutputRefused: ``output`` is no valid module name, or a file exists that was not
            written by burn-import or was changed since (unless ``force``), or the
            weights are too large to be embedded.
        OSError: a file or directory cannot be written.
    """
    output = Path(output)
    text = _with_record(compiled, output.stem)
    return write_module(
        output,
        text,
        compiled.weights,
        (compiled.origin, compiled.source_sha256),
        rules_of(compiled.target),
        body=_standalone(text) if compiled.standalone else text,
        embed=compiled.class_name if compiled.embed else "",
        shard_size=compiled.shard_size,
        force=force,
        dry_run=dry_run,
    )


def _standalone(text: str) -> str:
    """Return a module's text with the used parts of the runtime included."""
    from burn_import.standalone import standalone

    return standalone(text)


def _with_record(compiled: Compiled, stem: str) -> str:
    """Return a module's text that loads the record of ``stem``."""
    if compiled.stem in ("", stem):
        return compiled.text
    from burn_import.codegen.module.formatting import format_source

    record, other = re.escape(f"{compiled.stem}.safetensors"), f"{stem}.safetensors"
    line = rf"^( *WEIGHTS = Path\(__file__\)\.with_name\(\s*)\"{record}\""
    text = re.sub(rf"(?m)^``{record}``\.$", f"``{other}``.", compiled.text, count=1)
    text = re.sub(f"(?m){line}", rf'\1"{other}"', text, count=1)
    return format_source(text)
