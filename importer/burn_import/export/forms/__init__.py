"""The table from primitives to ONNX nodes, by family.

A form is a function of the graph writer and a call's arguments that returns the call's
results. If an operator's ``lower`` is a single primitive call, the form is derived from
it (:mod:`burn_import.export.inverse`). This folder has the forms of all other
primitives: their operators have other conventions, other operands, or several nodes.
"""

from burn_import.export.forms import (  # noqa: F401
    activations,
    elementwise,
    indexing,
    layers,
    norms,
    pooling,
    quantized,
    reductions,
    shapes,
    signal,
)
