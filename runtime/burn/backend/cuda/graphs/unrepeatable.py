"""Steps that CUDA graphs cannot repeat: those that wait for the device or copy from or
to the host.
"""

from typing import TYPE_CHECKING, Any

from burn.backend.cuda.graphs.nodes import capturing_graph, check_nodes
from burn.backend.cuda.libraries import CaptureMemory, capturing
from burn.plan.executable import Plan
from burn.plan.passes.graph import Graph
from burn.plan.passes.unique_slots import last_slot
from burn.plan.plan_ir import Read
from burn.plan.replay import bound_step

if TYPE_CHECKING:
    from burn.backend.cuda.device import Cuda


def unrepeatable_steps(plan: Plan, device: "Cuda", inputs: list[Any]) -> list[int]:
    """Return the numbers of the steps of a straight plan that graphs cannot repeat.

    Each step is computed and then captured alone. No box is set.
    """
    cupy, root = device.cupy, plan.root
    graph = Graph(root, plan.inputs)
    values = inputs + [None] * (last_slot(root) + 1 - len(inputs))
    cupy.cuda.get_current_stream().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    memory = CaptureMemory(cupy.cuda.MemoryPool())
    numbers = []
    with stream, capturing(memory):
        for number, step in enumerate(root.steps):
            call = bound_step(step, (), device)
            call(values)
            if isinstance(step, Read) or graph.is_folded(step):
                memory.add_constants(values[place] for place in step.outputs)
                continue
            stream.synchronize()
            if not _is_repeatable(call, values, stream, memory, cupy):
                numbers.append(number)
        stream.synchronize()
    memory.close()
    return numbers


def _is_repeatable(
    call: Any, values: list[Any], stream: Any, memory: CaptureMemory, cupy: Any
) -> bool:
    """Return whether a graph of ``call`` only computes on the device."""
    pool = cupy.cuda.MemoryPool()
    try:
        with (
            cupy.cuda.using_allocator(pool.malloc),
            capturing_graph(stream) as graphs,
            memory.recorded(),
        ):
            call(list(values))
        check_nodes(graphs[0])
    except RuntimeError:
        return False
    return True
