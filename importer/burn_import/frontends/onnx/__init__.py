"""ONNX files: ``read(path)`` gives the model as its file has it.

==============  ============================================================
``reader.py``   the whole file, and what is wrong with it if it is none
``wire.py``     protobuf without the tensors' bytes
``files.py``    memory maps; which external files a model may name
``tensors.py``  tensors of every dtype and encoding
``dims.py``     names of dimensions
``graphs.py``   graphs, nodes, attributes
``functions.py``  calls of model-local functions, replaced by their nodes
``scopes.py``   the module a node came from, as its exporter noted it
==============  ============================================================
"""

from burn_import.frontends.onnx.reader import read

__all__ = ["read"]
