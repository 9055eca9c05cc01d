"""The compiler: model files to Python modules.

==============  ==========================================================
``load(path)``  the model in a file as a module, without writing anything
``ModelGen``    the files of modules, from a script
==============  ==========================================================

The command ``burn-import`` is in :mod:`burn_import.cli`, the build hook of hatch in
:mod:`burn_import.build.hatch`.
"""

from burn_import.loading import load
from burn_import.modelgen import ModelGen
from burn_import.version import __version__

__all__ = ["ModelGen", "__version__", "load"]
