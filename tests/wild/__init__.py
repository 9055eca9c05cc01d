"""Opt-in coverage suite: exports public architectures and imports the files.

``python -m tests.wild run`` needs PyTorch; timm, torchvision, transformers and
diffusers are optional. ``python -m tests.wild table RESULTS`` prints the results,
merges them into those recorded in ``results.csv`` and writes ``docs/coverage.md``.
"""
