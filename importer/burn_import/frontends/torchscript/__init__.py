"""Programs of TorchScript: the archives of ``torch.jit.save``.

``read`` turns one into a :class:`burn_ir.RawModel`, the same that an ONNX file becomes.
The code in an archive is a small part of Python, which is parsed and followed here: it
is never compiled or executed.
"""

from burn_import.frontends.torchscript.reader import read

__all__ = ["read"]
