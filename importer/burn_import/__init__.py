"""The compiler from model files to Python modules.

===============  ==========================================================
``load(path)``   the model in a file as a module, without writing files
``export_onnx``  a module as an ONNX file
``ModelGen``     generation of module files from a script
``Options``      import options: dtype, input shapes, part of the graph, ...
``Hints``        facts that a file of weights alone lacks, for ``Options``
===============  ==========================================================

The command ``burn-import`` is in :mod:`burn_import.cli`, the build hook of hatch in
:mod:`burn_import.build.hatch`.
"""

from typing import TYPE_CHECKING, Any

from burn_import.loading import load
from burn_import.modelgen import ModelGen
from burn_import.options import Hints, Options
from burn_import.version import __version__

if TYPE_CHECKING:
    from burn_import.export.export import export_onnx as export_onnx

__all__ = ["Hints", "ModelGen", "Options", "__version__", "export_onnx", "load"]


def __getattr__(name: str) -> Any:
    """Import rarely used names on first access."""
    if name == "export_onnx":
        from burn_import.export.export import export_onnx

        return export_onnx
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
