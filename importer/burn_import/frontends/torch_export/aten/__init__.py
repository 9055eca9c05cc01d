"""Lowering rules from ATen operators to ONNX operators, by family.

A rule is a function of the builder and of the call's arguments, which have the names
and the defaults of the operator's schema.
"""

import burn_import.frontends.torch_export.aten.complex.arithmetic
import burn_import.frontends.torch_export.aten.complex.fourier
import burn_import.frontends.torch_export.aten.complex.spectrograms
import burn_import.frontends.torch_export.aten.complex.trigonometry
import burn_import.frontends.torch_export.aten.complex.views
import burn_import.frontends.torch_export.aten.control
import burn_import.frontends.torch_export.aten.linalg.decompositions
import burn_import.frontends.torch_export.aten.linalg.diagonals
import burn_import.frontends.torch_export.aten.linalg.linear_systems
import burn_import.frontends.torch_export.aten.linalg.matmul
import burn_import.frontends.torch_export.aten.linalg.vector_norms
import burn_import.frontends.torch_export.aten.math.arithmetic
import burn_import.frontends.torch_export.aten.math.cast
import burn_import.frontends.torch_export.aten.math.creation
import burn_import.frontends.torch_export.aten.math.elementwise
import burn_import.frontends.torch_export.aten.math.integration
import burn_import.frontends.torch_export.aten.math.logic
import burn_import.frontends.torch_export.aten.math.random
import burn_import.frontends.torch_export.aten.math.reduction
import burn_import.frontends.torch_export.aten.math.scalars
import burn_import.frontends.torch_export.aten.math.segments
import burn_import.frontends.torch_export.aten.math.sorting
import burn_import.frontends.torch_export.aten.math.special_functions
import burn_import.frontends.torch_export.aten.math.statistics
import burn_import.frontends.torch_export.aten.math.unique_and_cumulative
import burn_import.frontends.torch_export.aten.nn.activation
import burn_import.frontends.torch_export.aten.nn.attention
import burn_import.frontends.torch_export.aten.nn.backward
import burn_import.frontends.torch_export.aten.nn.batch_norm
import burn_import.frontends.torch_export.aten.nn.conv
import burn_import.frontends.torch_export.aten.nn.embedding_bag
import burn_import.frontends.torch_export.aten.nn.loss
import burn_import.frontends.torch_export.aten.nn.margin_losses
import burn_import.frontends.torch_export.aten.nn.normalization
import burn_import.frontends.torch_export.aten.nn.packed_sequence
import burn_import.frontends.torch_export.aten.nn.pool
import burn_import.frontends.torch_export.aten.nn.quantization
import burn_import.frontends.torch_export.aten.nn.resize
import burn_import.frontends.torch_export.aten.nn.rnn
import burn_import.frontends.torch_export.aten.nn.transformer
import burn_import.frontends.torch_export.aten.nn.vision
import burn_import.frontends.torch_export.aten.shape.as_strided
import burn_import.frontends.torch_export.aten.shape.concatenation
import burn_import.frontends.torch_export.aten.shape.indexing
import burn_import.frontends.torch_export.aten.shape.scatter
import burn_import.frontends.torch_export.aten.shape.slicing
import burn_import.frontends.torch_export.aten.shape.views  # noqa: F401  each registers its rules
from burn_import.frontends.torch_export.registry import COMPLEX, RULES

__all__ = ["COMPLEX", "RULES"]
