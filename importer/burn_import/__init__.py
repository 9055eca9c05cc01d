"""The compiler: model files to Python modules.

==============  ==========================================================
``load(path)``  the model in a file as a module, without writing anything
``ModelGen``    the files of modules, from a script
``Options``     what may be asked of both: a dtype, shapes, a part, ...
``Hints``       what weights alone do not say, for ``Options``
==============  ==========================================================

The command ``burn-import`` is in :mod:`burn_import.cli`, the build hook of hatch in
:mod:`burn_import.build.hatch`.
"""

from burn_import.loading import load
from burn_import.modelgen import ModelGen
from burn_import.options import Hints, Options
from burn_import.version import __version__

__all__ = ["Hints", "ModelGen", "Options", "__version__", "load"]
