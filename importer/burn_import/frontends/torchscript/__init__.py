"""Frontend for TorchScript: the archives of ``torch.jit.save``.

``read`` converts an archive to a :class:`burn_ir.RawModel`, as the ONNX reader does
with its files. The code in an archive is a small subset of Python, which is parsed and
interpreted symbolically here; it is never compiled or executed.
"""

from burn_import.frontends.torchscript.reader import read

__all__ = ["read"]
