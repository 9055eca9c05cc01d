"""Simplification of mask conditions by terms that always hold."""

from dataclasses import dataclass, field

from burn_import.passes.shapes.affine_indices import Ramp, Ramps
from burn_import.rewriting.dataflow import Dataflow
from burn_ir.dim import Dim, lower_bound

#: The most nodes that are followed to decide a condition.
STEPS = 12
#: Operators whose result is True everywhere if their first operand is.
MOVES = ("Expand", "Unsqueeze", "Squeeze", "Reshape", "Transpose", "Identity")


@dataclass
class Conditions:
    """Analysis of the bool values of a graph."""

    flow: Dataflow
    ramps: Ramps = field(init=False)
    _always: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ramps = Ramps(self.flow)

    def always(self, name: str | None, steps: int = STEPS) -> bool:
        """Return whether ``name`` is provably True everywhere."""
        if name is None or not steps:
            return False
        if name not in self._always:
            self._always[name] = self._is_always(name, steps - 1)
        return self._always[name]

    def _is_always(self, name: str, steps: int) -> bool:
        stored = self.flow.stored(name)
        if stored is not None:
            return bool(stored.all())
        node = self.flow.made_by(name, "And", "GreaterOrEqual", "LessOrEqual", *MOVES)
        if node is None:
            return False
        if node.op.onnx == "And":
            return all(self.always(operand, steps) for operand in node.inputs)
        if node.op.onnx in MOVES:
            return self.always(node.inputs[0], steps)
        low, high = (self.ramps.of(operand) for operand in node.inputs)
        if node.op.onnx == "GreaterOrEqual":
            low, high = high, low
        return low is not None and high is not None and _is_below(low, high)

    def needed(self, name: str, scores: tuple[Dim, ...]) -> str:
        """Return ``name``, or a smaller value that broadcasts to the same condition.

        The last axis is never left to broadcasting.
        """
        for _ in range(STEPS):
            narrower = [
                other
                for other in self._without_one(name)
                if other is not None and self._reaches(other, scores)
            ]
            if not narrower:
                break
            name = narrower[0]
        return name

    def _without_one(self, name: str) -> list[str | None]:
        node = self.flow.made_by(name, "And", "Expand")
        if node is None:
            return []
        if node.op.onnx == "Expand":
            return [node.inputs[0]]
        pairs = (node.inputs, node.inputs[::-1])
        return [term for term, other in pairs if self.always(other)]

    def _reaches(self, name: str, scores: tuple[Dim, ...]) -> bool:
        shape = self.flow.extents(name)
        return shape[-1:] == scores[-1:] and broadcasts(shape, scores)


def broadcasts(shape: tuple[Dim, ...], scores: tuple[Dim, ...]) -> bool:
    """Return whether a value of ``shape`` broadcasts to the shape of the scores."""
    if len(shape) > len(scores):
        return False
    extents = scores[len(scores) - len(shape) :]
    return all(n in (1, d) for n, d in zip(shape, extents, strict=True))


def _is_below(low: Ramp, high: Ramp) -> bool:
    """Return whether every element of ``low``, which is constant, is <= ``high``."""
    rises = [lower_bound(step) for step in (high.offset - low.offset, *high.steps)]
    return low.is_even and all(rise is not None and rise >= 0 for rise in rises)
