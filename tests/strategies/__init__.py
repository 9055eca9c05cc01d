"""Hypothesis strategies for every operator, by family. Importing this declares them."""

from tests.strategies import (activation, attention, bits, cast, control, conv, creation, elementwise, functions, fused, grid, indexing, linalg, linear_attention, logic, loss, matmul, microsoft, microsoft_attention, microsoft_quantize, ml_features, ml_models, ml_trees, norm, ordering, pool, quantize, random, reduction, rnn, roi, selection, sequence, shape, signal, text, training, vision)
from tests.strategies.registry import (Example, case, cases, examples)

__all__ = ["Example", "activation", "attention", "bits", "case", "cases", "cast", "control", "conv", "creation", "elementwise", "examples", "functions", "fused", "grid", "indexing", "linalg", "linear_attention", "logic", "loss", "matmul", "microsoft", "microsoft_attention", "microsoft_quantize", "ml_features", "ml_models", "ml_trees", "norm", "ordering", "pool", "quantize", "random", "reduction", "rnn", "roi", "selection", "sequence", "shape", "signal", "text", "training", "vision",]
