"""Generated modules of PyTorch: ``burn-import model.onnx --target torch``.

``forms/`` declares how each primitive of ``burn.ops`` is written, ``layers.py`` each
class of ``burn.nn``. What PyTorch has no function for is a helper function in the
generated file, whose source is in ``burn_templates/torch``.
"""
