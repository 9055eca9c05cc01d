"""Rules: what each operator of ATen is in operators of ONNX, by family.

A rule is a function of the builder and of the call's arguments, by the names that the
schema of the operator has for them; defaults of the function are those of the schema.
"""

import burn_import.exported.rules.activation
import burn_import.exported.rules.analytic
import burn_import.exported.rules.arithmetic
import burn_import.exported.rules.attention
import burn_import.exported.rules.bags
import burn_import.exported.rules.batch_norm
import burn_import.exported.rules.cast
import burn_import.exported.rules.complex_numbers
import burn_import.exported.rules.complex_views
import burn_import.exported.rules.control
import burn_import.exported.rules.conv
import burn_import.exported.rules.counting
import burn_import.exported.rules.creation
import burn_import.exported.rules.decompositions
import burn_import.exported.rules.diagonals
import burn_import.exported.rules.fourier
import burn_import.exported.rules.functions
import burn_import.exported.rules.gradients
import burn_import.exported.rules.indexing
import burn_import.exported.rules.joins
import burn_import.exported.rules.linear_systems
import burn_import.exported.rules.logic
import burn_import.exported.rules.loss
import burn_import.exported.rules.margins
import burn_import.exported.rules.matmul
import burn_import.exported.rules.norm
import burn_import.exported.rules.norms
import burn_import.exported.rules.numbers
import burn_import.exported.rules.ordering
import burn_import.exported.rules.packed
import burn_import.exported.rules.parts
import burn_import.exported.rules.pool
import burn_import.exported.rules.quantization
import burn_import.exported.rules.random
import burn_import.exported.rules.reduction
import burn_import.exported.rules.resize
import burn_import.exported.rules.rnn
import burn_import.exported.rules.scatter
import burn_import.exported.rules.spectrograms
import burn_import.exported.rules.strided
import burn_import.exported.rules.transformer
import burn_import.exported.rules.views
import burn_import.exported.rules.vision  # noqa: F401  each registers its rules
from burn_import.exported.table import COMPLEX, RULES

__all__ = ["COMPLEX", "RULES"]
