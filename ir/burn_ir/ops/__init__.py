"""The declarations of all operators, by family. Importing this declares them."""

from burn_ir.ops import (activation, attention, batch_scan, bits, cast, control, conv, creation, dropout, elementwise, functions, fused, gradient, grid, indexing, linalg, linear_attention, logic, loss, matmul, microsoft, ml, norm, ordering, padding, pool, quantize, random, reduction, resize, rnn, roi, scatter, selection, sequence, shape, signal, text, training, vision)

__all__ = ["activation", "attention", "batch_scan", "bits", "cast", "control", "conv", "creation", "dropout", "elementwise", "functions", "fused", "gradient", "grid", "indexing", "linalg", "linear_attention", "logic", "loss", "matmul", "microsoft", "ml", "norm", "ordering", "padding", "pool", "quantize", "random", "reduction", "resize", "rnn", "roi", "scatter", "selection", "sequence", "shape", "signal", "text", "training", "vision",]
