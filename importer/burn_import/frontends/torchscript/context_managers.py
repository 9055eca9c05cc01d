"""Objects that ``with`` statements of scripts enter."""

from burn_import.frontends.torch_export.builder import Value
from burn_import.frontends.torchscript.expressions import Expressions, Frame
from burn_import.frontends.torchscript.values import ContextManager, PyValue, TensorRef
from burn_ir import UnsupportedModel


def check_context(entered: PyValue) -> None:
    """Check that a ``with`` statement does not change the results of its body.

    Raises:
        UnsupportedModel: it does not; ``no_grad`` only changes gradients.
    """
    if not isinstance(entered, ContextManager):
        raise UnsupportedModel(
            "expected torch.no_grad() in a with statement, got another object"
        )
    is_enabled = entered.args[2:3] != [False]
    if entered.kind == "autocast" and is_enabled:
        raise UnsupportedModel(
            "torch.autocast is not supported in scripts, whose code has no casts; "
            "use torch.jit.trace or torch.export.export"
        )


class WithoutGradients:
    """The block of ``with torch.no_grad()``, whose results are detached."""

    def __init__(self, machine: Expressions) -> None:
        self.machine = machine
        self.first_node = len(machine.writer.nodes.nodes)
        self.first_change = len(machine.journal)

    def detach(self, frame: Frame, result: PyValue) -> None:
        """Detach the tensors that the block computed, and changed in place.

        Raises:
            UnsupportedModel: it changed a tensor in place that may have a gradient.
        """
        modules = self.machine.modules
        reachable = [*frame.names.values(), result]
        reachable += [*modules.states.values(), *modules.assigned.values()]
        tensors = [
            x for x in self.machine.leaves(reachable) if isinstance(x, TensorRef)
        ]
        holders = {id(x): x for tensor in tensors for x in tensor.memory.holders}
        intact = [holder for holder in holders.values() if not holder.stale]
        for holder in intact:  # views of changed tensors are computed again
            holder.current = holder.value
        computed = self._computed_names()
        self._check_changes(computed)
        detached: dict[str, Value] = {}
        for holder in intact:
            name = holder.current.name
            if name in computed and not holder.current.is_number:
                if name not in detached:
                    detached[name] = self._without_gradient(frame, holder)
                holder.current = detached[name]
        for holder in intact:
            if holder.base is not None:
                holder.version = holder.base.current.name

    def _computed_names(self) -> set[str]:
        """Return the names of the values that the block computed."""
        nodes = self.machine.writer.nodes.nodes[self.first_node :]
        return {name for node in nodes for name in node.outputs if name}

    def _without_gradient(self, frame: Frame, holder: TensorRef) -> Value:
        alone = TensorRef(holder.current)
        origin = frame.origin("detached")
        result: TensorRef = self.machine.operator("detach", [alone], {}, origin)
        return result.current

    def _check_changes(self, computed: set[str]) -> None:
        trained = self.machine.modules.trained
        for _, before in self.machine.journal[self.first_change :]:
            if before.name not in computed and trained.get(before.name, True):
                raise UnsupportedModel(
                    "a tensor that may have a gradient is changed in place within "
                    "torch.no_grad()"
                )
