"""All cases."""

from tests.importer.aten import changes, in_place, more, rest
from tests.importer.aten.complex import complex_numbers, fourier, spectrograms
from tests.importer.aten.linalg import linear_systems, matmul
from tests.importer.aten.math import (
    arithmetic,
    casts,
    choices,
    counting,
    functions,
    logic,
    ordering,
    quantization,
    reduction,
    segments,
)
from tests.importer.aten.nn import (
    activation,
    attention,
    conv,
    gradients,
    loss,
    norm,
    pool,
    resize,
    sequences,
    transformer,
)
from tests.importer.aten.shape import creation, indexing, parts, scatter, strided, views

CASES = (
    *activation.CASES,
    *arithmetic.CASES,
    *attention.CASES,
    *casts.CASES,
    *changes.CASES,
    *choices.CASES,
    *complex_numbers.CASES,
    *conv.CASES,
    *counting.CASES,
    *creation.CASES,
    *fourier.CASES,
    *functions.CASES,
    *gradients.CASES,
    *in_place.CASES,
    *indexing.CASES,
    *linear_systems.CASES,
    *logic.CASES,
    *loss.CASES,
    *matmul.CASES,
    *more.CASES,
    *norm.CASES,
    *ordering.CASES,
    *parts.CASES,
    *pool.CASES,
    *quantization.CASES,
    *reduction.CASES,
    *resize.CASES,
    *rest.CASES,
    *scatter.CASES,
    *segments.CASES,
    *sequences.CASES,
    *spectrograms.CASES,
    *strided.CASES,
    *transformer.CASES,
    *views.CASES,
)
