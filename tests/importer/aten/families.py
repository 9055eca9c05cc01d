"""All cases."""

from tests.importer.aten import (
    arithmetic,
    casts,
    choices,
    functions,
    logic,
)

CASES = (
    *arithmetic.CASES,
    *casts.CASES,
    *choices.CASES,
    *functions.CASES,
    *logic.CASES,
)
