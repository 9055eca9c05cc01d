"""Fusion passes for devices with fused kernels for layers and their epilogues."""

from functools import partial
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from burn.plan.passes import run_passes
from burn.plan.passes.constants import hoist_constants
from burn.plan.passes.dead_code import without_dead
from burn.plan.passes.fusion.attention import fuse_attention
from burn.plan.passes.fusion.batch_norm_parts import split_batch_norms
from burn.plan.passes.fusion.caches import fuse_caches
from burn.plan.passes.fusion.elements import KernelSupport, fuse_elementwise
from burn.plan.passes.fusion.epilogue_fusion import fuse_epilogues
from burn.plan.passes.fusion.horizontal import fuse_horizontally
from burn.plan.passes.fusion.layers import (
    apply_to_any_rank,
    form_linear_layers,
    fuse_biases,
)
from burn.plan.passes.fusion.merged_linears import merge_layers
from burn.plan.passes.fusion.norms import fold_norms
from burn.plan.passes.fusion.permutes import delay_permutes
from burn.plan.passes.fusion.row_products import fuse_row_products
from burn.plan.passes.fusion.scales import fold_scales
from burn.plan.passes.graph import FLOAT32, Pass
from burn.plan.plan_ir import Segment

if TYPE_CHECKING:
    from burn.plan.executable import Plan

#: Passes in execution order, run once for each dtype.
DEVICE_PASSES: tuple[Pass, ...] = (
    hoist_constants,
    form_linear_layers,
    fuse_biases,
    apply_to_any_rank,
    fold_norms,
    delay_permutes,
    fold_scales,
    fuse_attention,
    fuse_caches,
    without_dead,
    partial(merge_layers, most=inf),
    fuse_epilogues,
    fuse_row_products,
    without_dead,
    hoist_constants,
    without_dead,
)
#: Half types first: their patterns include float32 operations between casts.
DTYPES = (np.dtype(np.float16), FLOAT32)


def device_segment(plan: "Plan", abilities: KernelSupport | None = None) -> Segment:
    """Return the recording with layers, norms, attention and epilogues fused.

    With ``abilities``, the remaining elementwise operations are fused into chains.
    """
    root = plan.root
    for dtype in DTYPES:
        root = run_passes(root, plan.inputs, DEVICE_PASSES, dtype)
    if abilities is not None:
        chains = partial(fuse_elementwise, abilities=abilities)
        root = run_passes(root, plan.inputs, (chains, without_dead))
    return root


def training_segment(plan: "Plan", abilities: KernelSupport) -> Segment:
    """Return a recording with gradients, with elementwise operations fused.

    Layers stay as they are, since gradients read their results.
    """
    chains = partial(fuse_elementwise, abilities=abilities, recomputes=True)
    passes: tuple[Pass, ...] = (
        *(hoist_constants, split_batch_norms, without_dead, chains),
        *(without_dead, fuse_horizontally),
    )
    return run_passes(plan.root, plan.inputs, passes)
