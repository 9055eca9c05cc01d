"""User-requested changes of a model: input shapes, subgraphs, and dtype.

Unlike passes, transforms change the results of the model, so none runs by default.

====================  ========================================================
``shapes.py``         the extents of inputs, fixed or named
``opening``           names for extents that the file fixes, as a batch of 1
``subgraph.py``       the subgraph between named values
``precision.py``      the floating dtype of the computation
``option_checks.py``  options that have no effect on a kind of file
``prepared.py``       applies all of them, in this order, and infers types
====================  ========================================================
"""

from burn_import.transform.errors import WrongOptions
from burn_import.transform.option_checks import check_applicable
from burn_import.transform.prepared import check_options, prepared

__all__ = ["WrongOptions", "check_applicable", "check_options", "prepared"]
