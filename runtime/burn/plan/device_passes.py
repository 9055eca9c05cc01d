"""Fusion passes for devices with fused kernels for layers and their epilogues."""

from functools import partial
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from burn.plan.passes import Pass, run_passes
from burn.plan.passes.constants import constants_first
from burn.plan.passes.dead import without_dead
from burn.plan.passes.fusion.attention import with_attention
from burn.plan.passes.fusion.caches import with_caches
from burn.plan.passes.fusion.elements import Abilities, in_elements
from burn.plan.passes.fusion.epilogue_fusion import with_endings
from burn.plan.passes.fusion.few_rows import with_few_rows
from burn.plan.passes.fusion.layers import as_layers, of_any_rank, with_biases
from burn.plan.passes.fusion.merging import merged
from burn.plan.passes.fusion.norms import without_norms
from burn.plan.passes.fusion.permutes import with_late_permutes
from burn.plan.passes.fusion.scales import with_scales
from burn.plan.passes.graph import FLOAT32
from burn.plan.plan_ir import Segment

if TYPE_CHECKING:
    from burn.plan.executable import Plan

#: Passes in execution order, run once for each dtype.
DEVICE_PASSES: tuple[Pass, ...] = (
    constants_first,
    as_layers,
    with_biases,
    of_any_rank,
    without_norms,
    with_late_permutes,
    with_scales,
    with_attention,
    with_caches,
    without_dead,
    partial(merged, most=inf),
    with_endings,
    with_few_rows,
    without_dead,
    constants_first,
    without_dead,
)
#: Half types first: their patterns include float32 operations between casts.
DTYPES = (np.dtype(np.float16), FLOAT32)


def device_segment(plan: "Plan", abilities: Abilities | None = None) -> Segment:
    """Return the recording with layers, norms, attention and epilogues fused.

    With ``abilities``, the remaining elementwise operations are fused into chains.
    """
    root = plan.root
    for dtype in DTYPES:
        root = run_passes(root, plan.inputs, DEVICE_PASSES, dtype)
    if abilities is not None:
        chains = partial(in_elements, abilities=abilities)
        root = run_passes(root, plan.inputs, (chains, without_dead))
    return root
