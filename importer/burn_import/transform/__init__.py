"""Changes of a model that its caller asks for: shapes, a part of it, a dtype.

Unlike the passes, these change what is computed, so none of them runs by itself.

=================  ========================================================
``shapes.py``      the extents of inputs, fixed or named
``cut.py``         the part of the model between given values
``precision.py``   the floating dtype that it computes in
``applicable.py``  the options that a kind of file has no use for
``prepared.py``    all of them, in this order, on the way to a typed graph
=================  ========================================================
"""

from burn_import.transform.applicable import check_applicable
from burn_import.transform.errors import WrongOptions
from burn_import.transform.prepared import check_options, prepared

__all__ = ["WrongOptions", "check_applicable", "check_options", "prepared"]
