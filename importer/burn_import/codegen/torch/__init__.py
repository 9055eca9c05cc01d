"""Code generation for PyTorch: ``burn-import model.onnx --target torch``.

``forms/`` maps each primitive of ``burn.ops`` to PyTorch source, ``layers.py`` each
class of ``burn.nn``. Functions that PyTorch lacks are helper functions in the generated
file, whose source is in ``burn_templates/torch``.
"""
