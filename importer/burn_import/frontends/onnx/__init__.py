"""Reader of ONNX files: ``read(path)`` returns the raw model.

==============  ============================================================
``reader.py``   entry point: reads a whole file or raises one error for it
``wire.py``     protobuf parsing without the bytes of tensors
``files.py``    memory maps; checks of the paths of external files
``tensors.py``  tensors of every dtype and encoding
``dims.py``     names of symbolic dimensions
``graphs.py``   graphs, nodes and attributes
``functions.py``  inlining of model-local functions
``scopes.py``   the module path that an exporter recorded for a node
==============  ============================================================
"""

from burn_import.frontends.onnx.reader import read

__all__ = ["read"]
