"""Writes a trained PyTorch module as one self-contained ONNX file.

Shared by the training scripts; needs PyTorch, onnx and onnxscript.
"""

from pathlib import Path

import onnx
import onnx_ir
import torch
from onnxscript import optimizer, rewriter
from onnxscript.rewriter.rules import common

OPSET = 20

# What a reader of the file can use: where a node stands in the module tree. The
# exporter also stores stack traces, which hold paths of the machine that exported.
KEPT_METADATA = {
    "pkg.torch.onnx.name_scopes",
    "pkg.torch.onnx.class_hierarchy",
}


def export_onnx(
    module: torch.nn.Module,
    example: torch.Tensor,
    path: Path,
    input_name: str,
    output_name: str,
) -> None:
    """Return nothing; writes ``module`` to ``path`` with a dynamic first dimension.

    ``module`` must be in eval mode and take one tensor shaped like ``example``. The
    exporter's own optimizer is not run: it folds BatchNormalization into Conv, and a
    model to be fine-tuned wants it as a node of its own.
    """
    program = torch.onnx.export(
        module,
        (example,),
        input_names=[input_name],
        output_names=[output_name],
        dynamic_shapes=({0: torch.export.Dim("batch")},),
        opset_version=OPSET,
        dynamo=True,
        optimize=False,
    )
    if program is None:
        raise RuntimeError(f"{path.name}: the exporter returned no program")
    _simplify(program.model)
    model = program.model_proto
    _strip(model)
    onnx.checker.check_model(model, full_check=True)
    path.write_bytes(model.SerializeToString(deterministic=True))


def _simplify(model: onnx_ir.Model) -> None:
    """Return nothing; folds constants and drops the zero biases the exporter adds."""
    rules = [
        common.remove_optional_bias_from_conv_rule,
        common.materialize_reshape_shape_rule,
    ]
    optimizer.fold_constants(model, onnx_shape_inference=True)
    rewriter.rewrite(model, pattern_rewrite_rules=rules)
    optimizer.remove_unused_nodes(model)


def _strip(model: onnx.ModelProto) -> None:
    """Return nothing; drops documentation and machine paths from ``model``."""
    graph = model.graph
    model.doc_string = graph.doc_string = ""
    for node in graph.node:
        node.doc_string = ""
    carriers = [model, graph, *graph.node, *graph.input, *graph.output]
    for carrier in [*carriers, *graph.value_info, *graph.initializer]:
        kept = [p for p in carrier.metadata_props if p.key in KEPT_METADATA]
        del carrier.metadata_props[:]
        carrier.metadata_props.extend(kept)
