"""Simplification passes: graph rewrites that preserve the computed function.

Each pass is a function of a graph in its own file, those that recover activations are
tables of formulas; they run in this order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from sys import modules

from burn_import.internal import defects, located
from burn_import.passes.activations.gates import (
    gelu,
    hard_sigmoid,
    hard_swish,
    mish,
    silu,
    softplus,
    softsign,
)
from burn_import.passes.activations.rectifiers import clip, elu, leaky_relu, prelu
from burn_import.passes.activations.softmax import softmax
from burn_import.passes.attention.attention import attention
from burn_import.passes.attention.einsum_attention import einsum_attention
from burn_import.passes.attention.leading_transposes import leading_transposes
from burn_import.passes.attention.multihead_attention import multihead_attention
from burn_import.passes.attention.needed_conditions import needed_conditions
from burn_import.passes.attention.repeat_kv import repeat_kv
from burn_import.passes.attention.rope import rope
from burn_import.passes.attention.rotations import rotations
from burn_import.passes.attention.windows import windows
from burn_import.passes.cleanup.cse import cse
from burn_import.passes.cleanup.dead_code import dead_code
from burn_import.passes.cleanup.detachments import detachments
from burn_import.passes.cleanup.fold_branches import fold_branches
from burn_import.passes.cleanup.fold_constants import fold_constants
from burn_import.passes.cleanup.identities import identities
from burn_import.passes.cleanup.identity_lookups import identity_lookups
from burn_import.passes.cleanup.repetitions import repetitions
from burn_import.passes.cleanup.requantizations import requantizations
from burn_import.passes.cleanup.selections import selections
from burn_import.passes.cleanup.sink_constants import sink_constants
from burn_import.passes.cleanup.strided_views import strided_views
from burn_import.passes.cleanup.uniform_lookups import uniform_lookups
from burn_import.passes.cleanup.wrapped_indices import wrapped_indices
from burn_import.passes.layers.conv_bias import conv_bias
from burn_import.passes.layers.conv_padding import conv_padding
from burn_import.passes.layers.dequantized_movements import dequantized_movements
from burn_import.passes.layers.expand_fused_layers import expand_fused_layers
from burn_import.passes.layers.expand_fused_matmul import expand_fused_matmul
from burn_import.passes.layers.expand_quantized_operators import (
    expand_quantized_operators,
)
from burn_import.passes.layers.expand_skip_norms import expand_skip_norms
from burn_import.passes.layers.linear import linear
from burn_import.passes.layers.linear_rows import linear_rows
from burn_import.passes.layers.quantize_dequantize import quantize_dequantize
from burn_import.passes.layers.quantized_layers import quantized_layers
from burn_import.passes.layers.quantized_weights import quantized_weights
from burn_import.passes.layers.tree_ensembles import tree_ensembles
from burn_import.passes.layers.unit_rows import unit_rows
from burn_import.passes.norms.batch_norm_affine import batch_norm_affine
from burn_import.passes.norms.fold_batch_norm import fold_batch_norm
from burn_import.passes.norms.group_norm import group_norm
from burn_import.passes.norms.instance_norm import instance_norm
from burn_import.passes.norms.layer_norm import layer_norm
from burn_import.passes.norms.plain_norms import plain_norms
from burn_import.passes.norms.rms_norm import rms_norm
from burn_import.passes.recurrent.counted_loops import counted_loops
from burn_import.passes.recurrent.packed_weights import packed_weights
from burn_import.passes.recurrent.recurrent import recurrent
from burn_import.passes.recurrent.recurrent_cells import recurrent_cells
from burn_import.passes.shapes.chunked_slices import chunked_slices
from burn_import.passes.shapes.compose_movements import compose_movements
from burn_import.passes.shapes.einsum import einsum
from burn_import.passes.shapes.equal_splits import equal_splits
from burn_import.passes.shapes.float_ranges import float_ranges
from burn_import.passes.shapes.growing_concats import growing_concats
from burn_import.passes.shapes.implicit_broadcast import implicit_broadcast
from burn_import.passes.shapes.inserted_axes import inserted_axes
from burn_import.passes.shapes.interleaved_writes import interleaved_writes
from burn_import.passes.shapes.leading_axes import leading_axes
from burn_import.passes.shapes.nested_slices import nested_slices
from burn_import.passes.shapes.pixel_shuffle import pixel_shuffle
from burn_import.passes.shapes.reductions import reductions
from burn_import.passes.shapes.reshape_targets import reshape_targets
from burn_import.passes.shapes.roll import roll
from burn_import.passes.shapes.shape_sources import shape_sources
from burn_import.passes.shapes.single_slices import single_slices
from burn_import.passes.shapes.slices_of_concats import slices_of_concats
from burn_import.passes.shapes.slices_of_writes import slices_of_writes
from burn_import.passes.shapes.splits import splits
from burn_import.passes.shapes.squeeze_transpose import squeeze_transpose
from burn_import.passes.shapes.unflatten_heads import unflatten_heads
from burn_import.passes.shapes.written_slices import written_slices
from burn_import.rewriting.graphs import Pass, apply_with_bodies
from burn_import.rewriting.pattern import FormulaPass
from burn_ir.graph import Graph
from burn_ir.infer import infer

__all__ = ["ALL", "OPTIONAL_PASSES", "PASSES", "pass_names", "simplify", "summary"]

PASSES: tuple[Pass, ...] = (
    dead_code,
    fold_constants,
    fold_branches,
    counted_loops,
    shape_sources,
    float_ranges,
    detachments,
    selections,
    expand_fused_matmul,
    expand_fused_layers,
    expand_quantized_operators,
    expand_skip_norms,
    packed_weights,
    recurrent,
    unit_rows,
    splits,
    squeeze_transpose,
    reshape_targets,
    compose_movements,
    repetitions,
    dequantized_movements,
    requantizations,
    written_slices,
    interleaved_writes,
    slices_of_writes,
    slices_of_concats,
    growing_concats,
    strided_views,
    implicit_broadcast,
    layer_norm,
    rms_norm,
    group_norm,
    instance_norm,
    batch_norm_affine,
    plain_norms,
    identities,
    clip,
    gelu,
    silu,
    hard_swish,
    hard_sigmoid,
    leaky_relu,
    prelu,
    elu,
    softmax,
    softplus,
    softsign,
    mish,
    conv_bias,
    conv_padding,
    linear,
    quantized_weights,
    quantized_layers,
    recurrent_cells,
    linear_rows,
    tree_ensembles,
    roll,
    pixel_shuffle,
    reductions,
    uniform_lookups,
    wrapped_indices,
    identity_lookups,
    unflatten_heads,
    windows,
    einsum_attention,
    attention,
    multihead_attention,
    needed_conditions,
    repeat_kv,
    rotations,
    rope,
    cse,
    sink_constants,
    leading_transposes,
    einsum,
    leading_axes,
    nested_slices,
    single_slices,
    chunked_slices,
    equal_splits,
    inserted_axes,
    quantize_dequantize,
)

#: Passes that run after the fixed point of the others, which do not match their
#: results.
LAST = frozenset(
    {"leading_transposes", "einsum", "leading_axes", "nested_slices"}
    | {"single_slices", "chunked_slices", "equal_splits", "inserted_axes"}
    | {"quantize_dequantize"}
)

#: Passes that run only if named, after the others: they limit the uses of the model
#: (``fold_batch_norm`` prevents training).
OPTIONAL_PASSES: tuple[Pass, ...] = (fold_batch_norm,)

#: The maximum number of iterations over all passes; tested models need no more.
ROUNDS = 3


#: The name that selects all of ``PASSES``.
ALL = "all"


def pass_names() -> tuple[str, ...]:
    """Return the names of all passes, in their order."""
    return tuple(apply.__name__ for apply in (*PASSES, *OPTIONAL_PASSES))


def summary(name: str) -> str:
    """Return the summary of a pass: the first line of its file, if it is a function."""
    every = (*PASSES, *OPTIONAL_PASSES)
    (chosen,) = (apply for apply in every if apply.__name__ == name)
    if isinstance(chosen, FormulaPass):
        return chosen.summary
    return str(modules[chosen.__module__].__doc__).partition("\n")[0]


def simplify(graph: Graph, names: Iterable[str] | None = None) -> Graph:
    """Return the graph after the named passes (``PASSES`` if None), with types.

    ``"all"`` among the names selects ``PASSES``. Passes run in the order of ``PASSES``
    and ``OPTIONAL_PASSES`` until nothing changes, at most three times.

    Raises:
        ValueError: a name is not that of a pass.
    """
    chosen = _select_passes(names)
    last = [apply for apply in chosen if apply.__name__ in LAST]
    for _ in range(ROUNDS):
        before = graph
        for apply in chosen:
            graph = graph if apply in last else _apply(apply, graph)
        if graph is before:
            break
    for apply in last:
        graph = _apply(apply, graph)
    return graph


def _apply(apply: Pass, graph: Graph) -> Graph:
    with defects("try --no-simplify"), located("pass", apply.__name__):
        result = apply_with_bodies(apply, graph)
        if result is graph:
            return graph
        return infer(apply_with_bodies(dead_code, result))


def _select_passes(names: Iterable[str] | None) -> Sequence[Pass]:
    if names is None:
        return PASSES
    selected, every = set(names), (*PASSES, *OPTIONAL_PASSES)
    available = {apply.__name__ for apply in every}
    if ALL in selected:
        selected = selected - {ALL} | {apply.__name__ for apply in PASSES}
    if not selected <= available:
        raise ValueError(
            f"expected passes among {', '.join(sorted(available))}, "
            f"got {', '.join(sorted(selected - available))}"
        )
    return [apply for apply in every if apply.__name__ in selected]
