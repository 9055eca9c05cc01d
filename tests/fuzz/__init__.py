"""Differential fuzzing: random ONNX graphs, compared with onnxruntime.

``python -m tests.fuzz --seeds 0 1000 --jobs 2`` runs the graphs of a range of seeds.
"""
