"""Forms of all primitives: importing this package fills the table."""

from burn_import.codegen.torch.forms import (
    creation as creation,
    elementwise as elementwise,
    indexing as indexing,
    layers as layers,
    pooling as pooling,
    quantization as quantization,
    reductions as reductions,
    sequences as sequences,
    shapes as shapes,
    signals as signals,
    sorting as sorting,
)
