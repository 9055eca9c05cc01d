"""Optimization of a recorded plan: its passes, and the program that runs it."""

from functools import cached_property
from typing import Any

from burn.backend.cpu.bind.finite import NotFiniteError
from burn.backend.cpu.bind.program import Program
from burn.backend.cpu.device import Cpu
from burn.backend.cpu.jit.policy import (
    KernelPolicy,
    has_attention_kernel,
    has_compiler,
    has_products,
)
from burn.backend.cpu.onednn.binding.engine import (
    current,
    drop_packed,
    lacks_avx512,
    no_gain,
)
from burn.plan import passes
from burn.plan.executable import Plan
from burn.plan.passes import as_cells, in_chains, merge_layers, run_passes
from burn.plan.passes.dead_code import without_dead
from burn.plan.passes.graph import Graph, Pass, Steps
from burn.plan.passes.late import for_steps, late
from burn.plan.passes.unique_slots import with_unique_slots
from burn.plan.plan_ir import Segment, boxes_read
from burn.plan.replay import Replay
from burn.structs import replace
from burn.tensor import innermost


class OptimizedPlan:
    """A program for finite numbers, and the recorded plan for all others.

    ``program`` is None if the plan is observed, or runs without memory of its own.
    """

    def __init__(self, plan: Plan) -> None:
        root = run_passes(plan.root, plan.inputs, cpu_passes(plan))
        if plan.lowering and plan.can_lower:
            # The recording packed weights for kernels that the plan does not call.
            for box in boxes_read(plan.root):
                drop_packed(innermost(box.held()).data)
        self.program: Program | None = None
        if not plan.is_observed:
            options = (kernel_policy(plan), plan.has_gradients, plan.profiler)
            self.program = Program(root, *options)
        if plan.profiler is not None:
            plan.profiler.trace_origins(with_unique_slots(plan.root), root)
        recorded = root if plan.is_observed else plan.root
        self._recorded = replace(plan, root=recorded, lowering=(), generated=False)
        #: Whether a step has a lower precision than float32.
        self.has_lower_precision = bool(plan.lowering) and _is_lowered(root)

    def run(self, inputs: list[Any]) -> Any:
        """Return the result, by the program if all numbers are finite."""
        if self.program is not None:
            try:
                return self.program.run(inputs)
            except NotFiniteError:
                pass
        return self.replay.run(inputs)

    @cached_property
    def replay(self) -> Replay:
        """The plan as it was recorded, which is right for all numbers.

        It is bound when it is first needed, since most plans never are.
        """
        return Replay(self._recorded, Cpu())


#: Passes before all others: layers of integers.
_INTEGERS: tuple[Pass, ...] = (
    late("precision.dynamic_layers", "form_dynamic_layers", "integer_matmul"),
    late("precision.dynamic_layers", "fuse_dynamic_bias", "linear_of_integers"),
    without_dead,
)
#: Passes after all others, for devices with generated kernels.
_join_expansions = late("fusion.expansions", "join_expansions", "conv conv_then")
_GENERATED: tuple[Pass, ...] = (
    late(
        *("fusion.concats", "with_flat_concats"), "concat", "batch_norm batch_norm_then"
    ),
    _join_expansions,
    without_dead,
)
split_epilogue = late(
    "fusion.split_epilogues", "split_epilogue", "conv_then linear_then"
)


@for_steps("matmul", "masked_softmax softmax")
def _fuse_attention(steps: Steps, graph: Graph) -> Steps:
    """Fuse attention with a generated kernel, whose mask is added."""
    from burn.plan.passes.fusion.attention import Limits, fuse_attention

    limits = Limits(has_attention_kernel, has_bools=False)
    return fuse_attention(steps, graph, limits)


def _is_lowered(root: Segment) -> bool:
    from burn.plan.passes.precision.lowerings import is_lowered

    return is_lowered(root)


def cpu_passes(plan: Plan) -> tuple[Pass, ...]:
    """Return the passes for a plan on the CPU, in order.

    NumPy's recurrent layers are not faster than their equations. Chains are left to
    generated kernels if all of them are compiled or oneDNN is not there, except in
    plans that set boxes, where table updates are matched in them. Generated kernels of
    batch norms concatenate, and without oneDNN those of layers compute no activations
    but ReLU. Without AVX-512 two convolutions of oneDNN are faster than one kernel.
    """
    left_out: list[Pass] = []
    policy = kernel_policy(plan)
    if current() is None:
        left_out.append(as_cells)
    is_chaining = policy is KernelPolicy.PROFITABLE and current() is not None
    if policy.is_generating and not is_chaining and not plan.sets_boxes:
        left_out.append(in_chains)
    if policy is KernelPolicy.PROFITABLE and lacks_avx512():
        left_out.append(_join_expansions)
    lowering = plan.lowering if plan.can_lower else ()
    every = (*passes.PASSES, *lowering, *passes.LAST)
    if policy.is_generating and not plan.has_gradients and not lowering:
        merging = every.index(merge_layers) if merge_layers in every else 0
        every = (*every[:merging], _fuse_attention, *every[merging:])
    if not plan.has_gradients and (no_gain("int8") is None or has_products(policy)):
        every = (*_INTEGERS, *every)
    if policy.is_generating:
        every = (*every, *_GENERATED)
        if current() is None:
            every = (*every, split_epilogue)
    return tuple(each for each in every if each not in left_out)


def kernel_policy(plan: Plan) -> KernelPolicy:
    """Return which NumPy calls of a plan become generated kernels.

    Without an option of the user, plans with gradients have none: their forward values
    are bitwise those of eager calls.
    """
    if plan.generated is not None:
        return KernelPolicy.ALL if plan.generated else KernelPolicy.NONE
    if plan.has_gradients or not has_compiler():
        return KernelPolicy.NONE
    return KernelPolicy.PROFITABLE
