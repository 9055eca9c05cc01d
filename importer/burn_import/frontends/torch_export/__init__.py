"""Exported programs of PyTorch (``.pt2``): the archive of ``torch.export.save``.

``read`` turns one into a :class:`burn_ir.RawModel`, the same that an ONNX file becomes.
"""

from burn_import.frontends.torch_export.reader import read

__all__ = ["read"]
