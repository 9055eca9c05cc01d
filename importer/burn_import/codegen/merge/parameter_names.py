"""Names and annotations of constructor parameters."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from burn_import.codegen.merge.expression_slots import DifferError
from burn_import.tracing.identifiers import identifier, snake

#: Words in labels of widths.
WIDTHS = ("features", "channels", "hidden", "width")
#: Generic labels of parameters, with their replacements.
GENERIC_NAMES = {
    "normalized_shape": "features",
    "num_features": "channels",
    "num_channels": "channels",
    "size": "size",
    "width": "width",
}


def parameter_name(text: str) -> str:
    """Return the parameter name for an attribute, in lower case.

    An attribute may have the name of its class, as in ``self.SelfAttention =
    SelfAttention()``; a parameter of that name would shadow the class.
    """
    return snake(text) if text[0].isupper() else identifier(text)


def is_width(label: str) -> bool:
    """Return whether a label denotes a width."""
    return any(word in label for word in WIDTHS)


def are_one_kind(one: str, other: str) -> bool:
    """Return whether both names denote numbers of channels or features, or neither.

    A width of an image is an extent.
    """
    are_widths = [is_width(name) and name not in GENERIC_NAMES for name in (one, other)]
    return len(set(are_widths)) == 1


def label_of(labels: Sequence[str]) -> str:
    """Return the label of a parameter with several uses: ``channels`` for both.

    Windows that are as large as their distance are patches. A number of heads is also
    the width of values with one feature for each head.
    """
    if "heads" in labels:
        return "heads"
    specific = [label for label in labels if label not in GENERIC_NAMES] or [
        GENERIC_NAMES[label] for label in labels
    ]
    if {"kernel_size", "stride"} <= set(specific):
        return "patch_size"
    first = specific[0]
    direction, _, word = first.partition("_")
    both = {f"in_{word}", f"out_{word}"} <= set(specific) and direction in ("in", "out")
    return word if both else first


def kind_of(values: Sequence[Any]) -> str:
    """Return the annotation of a parameter.

    Raises:
        DifferError: the values have incompatible types.
    """
    kinds = sorted({_annotation_of(value) for value in values})
    if len(kinds) > 1 and (kinds[0] != "int" or not kinds[1].startswith("tuple")):
        raise DifferError
    return " | ".join(kinds)


def _annotation_of(value: Any) -> str:
    words = {int: "int", float: "float", np.float32: "float", bool: "bool", str: "str"}
    if not isinstance(value, tuple):
        if type(value) not in words:
            raise DifferError
        return words[type(value)]
    if all(type(item) is int for item in value):
        return "tuple[int, ...]"
    if not all(isinstance(item, tuple) and len(item) == 2 for item in value):
        raise DifferError
    return "tuple[tuple[int, int], ...]"
