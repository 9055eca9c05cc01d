"""Frontend for exported programs (``.pt2``): the archive of ``torch.export.save``.

``read`` converts one to a :class:`burn_ir.RawModel`, as the ONNX reader does with its
files.
"""

from burn_import.frontends.torch_export.reader import read

__all__ = ["read"]
