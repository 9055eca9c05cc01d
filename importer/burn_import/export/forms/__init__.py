"""The table from primitives to ONNX nodes, by family.

A form is a function of the writer and of a call's arguments that returns its results.
Where an operator's ``lower`` is one call of a primitive, the form is its inverse and
there is nothing to write here (:mod:`burn_import.export.inverse`). A function in this
folder is for what is not: operators with other conventions, other operands, or several
nodes.
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
)
