"""All cases."""

from tests.importer.aten import (
    arithmetic,
    casts,
    choices,
    creation,
    functions,
    indexing,
    logic,
    ordering,
    parts,
    reduction,
    scatter,
    views,
)

CASES = (
    *arithmetic.CASES,
    *casts.CASES,
    *choices.CASES,
    *creation.CASES,
    *functions.CASES,
    *indexing.CASES,
    *logic.CASES,
    *ordering.CASES,
    *parts.CASES,
    *reduction.CASES,
    *scatter.CASES,
    *views.CASES,
)
