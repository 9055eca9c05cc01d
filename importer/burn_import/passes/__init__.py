"""The passes: rewrites of a graph that keep what it computes.

Each is a function of a graph in the file of its name, and they run in this order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from burn_import.passes.attention import attention
from burn_import.passes.dead_code import dead_code
from burn_import.passes.fold_branches import fold_branches
from burn_import.passes.fold_constants import fold_constants
from burn_import.passes.gelu import gelu
from burn_import.passes.group_norm import group_norm
from burn_import.passes.hard_swish import hard_swish
from burn_import.passes.identities import identities
from burn_import.passes.layer_norm import layer_norm
from burn_import.passes.linear import linear
from burn_import.passes.lookups import lookups
from burn_import.passes.merge import merge
from burn_import.passes.mish import mish
from burn_import.passes.movements import movements
from burn_import.passes.placement import placement
from burn_import.passes.recurrent import recurrent
from burn_import.passes.recurrent_cells import recurrent_cells
from burn_import.passes.repeat_kv import repeat_kv
from burn_import.passes.rewrite import Pass, in_bodies
from burn_import.passes.rms_norm import rms_norm
from burn_import.passes.rope import rope
from burn_import.passes.silu import silu
from burn_import.passes.softplus import softplus
from burn_ir.graph import Graph
from burn_ir.infer import infer

__all__ = ["PASSES", "simplify"]

PASSES: tuple[Pass, ...] = (
    dead_code,
    fold_constants,
    fold_branches,
    recurrent,
    movements,
    layer_norm,
    rms_norm,
    group_norm,
    identities,
    gelu,
    silu,
    hard_swish,
    softplus,
    mish,
    linear,
    recurrent_cells,
    lookups,
    attention,
    repeat_kv,
    rope,
    merge,
    placement,
)

#: What one pass finds may be work for an earlier one; more rounds found nothing more.
ROUNDS = 3


def simplify(graph: Graph, names: Iterable[str] | None = None) -> Graph:
    """``graph`` after the passes called ``names`` (all of them when None), typed.

    They run in the order of ``PASSES`` until nothing changes, three times at most.

    Raises:
        ValueError: there is no pass of a given name.
    """
    chosen = _chosen(names)
    for _ in range(ROUNDS):
        before = graph
        for apply in chosen:
            graph = _applied(apply, graph)
        if graph is before:
            break
    return graph


def _applied(apply: Pass, graph: Graph) -> Graph:
    result = in_bodies(apply, graph)
    if result is graph:
        return graph
    return infer(in_bodies(dead_code, result))


def _chosen(names: Iterable[str] | None) -> Sequence[Pass]:
    if names is None:
        return PASSES
    wanted = set(names)
    known = {apply.__name__ for apply in PASSES}
    if not wanted <= known:
        raise ValueError(
            f"expected passes among {', '.join(sorted(known))}, "
            f"got {', '.join(sorted(wanted - known))}"
        )
    return [apply for apply in PASSES if apply.__name__ in wanted]
