"""Opt-in coverage suite: exports public architectures and imports the files.

``python -m tests.wild run`` needs PyTorch; timm, torchvision, transformers and
diffusers are optional. ``python -m tests.wild table`` prints the results and writes
``docs/coverage.md``.
"""
