"""Classification of stored arrays as parameters or buffers, by name and content."""

import re
from math import prod

import numpy as np

from burn.dtypes import float32, is_float
from burn_import.provenance.exporter_folding import is_folded
from burn_import.provenance.weight_owners import (
    ancestors,
    folded_floats,
    is_authored,
    is_dotted,
    is_parameter_of_paddle,
    original,
)
from burn_import.tracing.scalar_operands import INLINE_LIMIT
from burn_ir.graph import Graph
from burn_ir.types import Array

#: Names that PyTorch's models commonly give to buffers.
_BUFFERS = re.compile(
    r"(running_(mean|var)|(original_)?inv_freq|.*_ids|.*_?mask(ed_bias)?|"
    r"relative_(position_index|coords_table)|.*(cos|sin)_cached|embed_scale|"
    r"final_logits_bias|(hann_?|hamming_?|analysis_|synthesis_)?window|codebook|"
    r"((pixel|image|imagenet)_?)?(mean|std|var)|anchors?|anchor_(grid|points)|prior(s|_box(es)?)|"
    r"mel_(filters?|basis|scale)|filter_?bank|dft_(real|imag|matrix)|freqs_cis)"
)
#: The most elements of masks that may differ by chance.
SMALL_MASK = 4
#: The largest number that masks attention scores.
_MASKED = -100


def is_trained(graph: Graph, constant: str) -> bool:
    """Return whether a stored array is a trainable parameter, not a buffer.

    Few files record the difference. An array that an exporter computed is no parameter:
    training it would not train its sources, except in another shape as the operand of
    an operator that defines it as a parameter. Nor is one that is computed from
    integers alone, such as the result of a ``ConstantOfShape``. Arrays that are not
    floating cannot be trained; those that a call replaces only if the file says so. A
    small ``Constant`` node was written by hand, unless PaddlePaddle's name says
    otherwise; PyTorch's exporters store no weight so, others do. Other buffers are
    recognized by common names, except masks of different numbers, or, without a name,
    by content: rotary frequencies, ALiBi slopes, and masks. Sinusoidal position tables
    are recognized by content whatever their name.
    """
    array, constants = graph.constants[constant], graph.constants
    if not is_float(array.dtype):
        return False
    if constant in graph.states:
        return constants.trained.get(constant, False)
    name = original(graph, constant)
    if name in constants.trained:
        return constants.trained[name]
    if constant in constants.layer_weights or constant in constants.learned:
        return True
    is_computed = constant in constants.fills or constant in constants.measured
    is_computed |= folded_floats(graph, constant) == 0
    if is_computed or is_folded(graph, constant):
        return False
    if is_parameter_of_paddle(name):
        return True
    by_hand = array.size <= INLINE_LIMIT or graph.producer.startswith("pytorch")
    if by_hand and name in constants.literals:
        return False
    if is_sinusoid(array):
        return False
    leaf = name.rpartition(".")[2]
    if is_dotted(name) or is_authored(graph, constant):
        return not is_buffer_name(leaf) or _is_trained_mask(leaf, array)
    return not contents(array)


def _is_trained_mask(name: str, array: Array) -> bool:
    """Return whether most numbers of a mask differ, as they do after training."""
    is_mask = name.endswith("mask") and array.size > SMALL_MASK
    return is_mask and 2 * np.unique(array).size > array.size


def is_learned(graph: Graph, name: str | None) -> bool:
    """Return whether a value is, or was folded from, floats of the ``state_dict``.

    Training, or loading another ``state_dict``, changes its numbers, so passes must not
    depend on them. In files that do not list buffers, only parameters count.
    """
    if name is None or name in graph.types or name not in graph.constants:
        return False
    return any(_is_entry(graph, one) for one in ancestors(graph, name, floats=True))


def _is_entry(graph: Graph, constant: str) -> bool:
    """Return whether a constant is a floating entry of the author's ``state_dict``."""
    if not is_authored(graph, constant):
        return False
    return is_trained(graph, constant) or is_listed_buffer(graph, constant)


def is_listed_parameter(graph: Graph, constant: str) -> bool:
    """Return whether the file lists a constant as a trainable parameter."""
    return graph.constants.trained.get(original(graph, constant), False)


def is_listed_buffer(graph: Graph, constant: str) -> bool:
    """Return whether a constant is a persistent floating buffer of the file."""
    name, constants = original(graph, constant), graph.constants
    is_listed = name in constants.trained and name not in constants.transient
    return is_listed and is_float(constants[constant].dtype)


def is_kept(graph: Graph, constant: str) -> bool:
    """Return whether a constant is an author's tensor, read from the record.

    Integers count where the file lists its buffers; elsewhere they become literals.
    So do numbers, unless PaddlePaddle's name says that one was trained.
    """
    number = is_float(graph.constants[constant].dtype)
    if number and is_parameter_of_paddle(original(graph, constant)):
        return True
    return is_authored(graph, constant) and (number or bool(graph.constants.trained))


def is_buffer_name(name: str) -> bool:
    """Return whether PyTorch's models commonly register a buffer under this name."""
    return _BUFFERS.fullmatch(name) is not None


def contents(array: Array) -> str:
    """Return a noun for a stored array, from its contents; "" if there is none."""
    size = array.size
    if size < 2 or size != max(array.shape):
        return "mask" if _is_mask(array) else ""
    flat = array.reshape(-1)
    return _progression(flat) if array.dtype == float32 else ""


def _progression(flat: Array) -> str:
    """Return a noun for numbers in geometric progression.

    Rotary frequencies start at 1, or less if positions are scaled; the slopes of ALiBi
    start at the ratio itself. Any two numbers are a progression, so two frequencies
    must be 1 and a small one.
    """
    if not 0 < flat[-1] < flat[0] <= 1 or not (flat > 0).all():
        return ""
    steps = flat[1:].astype(np.float64) / flat[:-1]
    if not np.allclose(steps, steps[0], rtol=1e-4):
        return ""
    if np.isclose(steps[0], flat[0]):
        return "slopes"
    is_pair = flat.size == 2
    return "" if is_pair and not (flat[0] == 1 and flat[1] < 0.1) else "inv_freq"


def is_sinusoid(array: Array) -> bool:
    """Return whether rows are sines and cosines of 0, 1, 2, ... times frequencies."""
    if array.ndim < 2 or array.dtype != float32 or array.size != prod(array.shape[-2:]):
        return False
    rows = array.reshape(array.shape[-2:])[:3]
    if len(rows) < 3 or rows.shape[1] < 2 or not np.isin(rows[0], (0, 1)).all():
        return False
    if (rows[0] == rows[1]).all() or (np.abs(rows) > 1).any():
        return False
    is_sine = rows[0] == 0
    angles = np.where(is_sine, np.arcsin(rows[1]), np.arccos(rows[1]))
    expected = np.where(is_sine, np.sin(2 * angles), np.cos(2 * angles))
    return bool(np.allclose(rows[2], expected, atol=1e-3))


def _is_mask(array: Array) -> bool:
    """Return whether both zero and large negative numbers occur, and nothing else.

    Models add -100 or less to attention scores; float32's minimum is common.
    """
    if array.dtype != float32 or array.size <= INLINE_LIMIT:
        return False
    row = array[(0,) * (array.ndim - 1)]
    if (row[row > _MASKED] != 0).any():
        return False  # fast exit without reading all elements
    low = array <= _MASKED
    return bool(low.any() and not low.all() and not array[~low].any())
