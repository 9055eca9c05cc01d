"""LSTMs with projected states (``proj_size``), as scans over the steps.

ONNX has no such layer. The state ``h`` that is fed back is the projection of the
cell's output, so that it has fewer features than ``c``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from burn_import.frontends.torch_export.aten.control import formal, types_of
from burn_import.frontends.torch_export.builder import Builder, Value
from burn_ir.raw import RawGraph


@dataclass(frozen=True)
class ProjectedStack:
    """The layers of one call; ``params`` are those of all directions in a row."""

    g: Builder
    params: Sequence[Value]
    has_biases: bool
    layers: int
    bidirectional: bool
    #: Which steps are no padding, bool [time, batch, 1]; None if all are full.
    mask: Value | None = None

    def run(self, x: Value, hx: Sequence[Value]) -> tuple[Value, Value, Value]:
        """Return the outputs of ``x`` [time, batch, features] and the last states."""
        g, count = self.g, 2 if self.bidirectional else 1
        last: tuple[list[Value], list[Value]] = ([], [])
        for layer in range(self.layers):
            outputs = []
            for index in range(layer * count, (layer + 1) * count):
                h, c, y = self._direction(index, x, hx, index % count == 1)
                last[0].append(h)
                last[1].append(c)
                outputs.append(y)
            joined = outputs[0] if count == 1 else g.op("Concat", *outputs, axis=2)
            x = replace(joined, dims=None)  # the features are others
        h, c = (self._stacked(states) for states in last)
        return x, h, c

    def _direction(
        self, index: int, x: Value, hx: Sequence[Value], is_reverse: bool
    ) -> Sequence[Value]:
        """Return the last states and the outputs of one layer in one direction."""
        g, each = self.g, 5 if self.has_biases else 3
        w_ih, w_hh, *biases, w_hr = self.params[index * each : (index + 1) * each]
        first = [_row(g.op("Gather", s, g.constant(index), axis=0), s) for s in hx]
        parts = [x] if self.mask is None else [x, self.mask]
        body = self._body(first, parts, (w_ih, w_hh, w_hr, *biases))
        options: dict[str, Any] = {"body": body, "num_scan_inputs": len(parts)}
        if is_reverse:
            options["scan_input_directions"] = (1,) * len(parts)
            options["scan_output_directions"] = (1,)
        return g.many("Scan", 3, *first, *parts, **options)

    def _body(
        self, first: Sequence[Value], parts: Sequence[Value], weights: Sequence[Value]
    ) -> RawGraph:
        """Return one step; its inputs are h, c, the step of the input and the mask."""
        g = replace(self.g, out=self.g.out.inner())
        old = [formal(g, x, "state") for x in first]
        steps = [_row(formal(g, x, "part"), x) for x in parts]
        operands = (steps[0], *old, *weights)
        new = g.many("ProjectedLSTMCell", 2, *operands, domain="burn")
        if self.mask is not None:
            pairs = zip(new, old, strict=True)
            new = tuple(g.op("Where", steps[1], *pair) for pair in pairs)
        names = (*(x.name for x in new), g.op("Identity", new[0]).name)
        return RawGraph("body", types_of([*old, *steps]), names, tuple(g.out.nodes), {})

    def _stacked(self, states: Sequence[Value]) -> Value:
        rows = [self.g.op("Unsqueeze", state, [0]) for state in states]
        return rows[0] if len(rows) == 1 else self.g.op("Concat", *rows, axis=0)


def _row(x: Value, of: Value) -> Value:
    """Return ``x`` with the extents of ``of`` without the first."""
    return replace(x, dims=None if of.dims is None else of.dims[1:])
