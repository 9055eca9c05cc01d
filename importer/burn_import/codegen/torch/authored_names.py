"""Restoration of the author's attribute names, which PyTorch allows."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.torch.layers import MODULE_ATTRIBUTES
from burn_import.codegen.torch.tensor_methods import TENSOR_METHODS
from burn_ir.errors import UnsupportedModel


def with_authored_names(texts: Sequence[ClassText]) -> list[ClassText]:
    """Return ``texts`` with the attribute names of the keys: ``_conv`` for ``conv``.

    An attribute has one name in the whole module.

    Raises:
        UnsupportedModel: a part of a key is no valid attribute of a module.
    """
    names = {n: name for text in texts for n, name in text.record_names.items()}
    for name in names.values():
        if not name.isidentifier() or keyword.iskeyword(name):
            raise UnsupportedModel(
                f"expected keys of attributes that Python can have, got {name!r}",
                "the target burn has them",
            )
        if name in MODULE_ATTRIBUTES:
            raise UnsupportedModel(
                f"PyTorch's modules have an attribute {name!r}",
                "the target burn has it",
            )
    if not names:
        return list(texts)
    if clash := sorted(TENSOR_METHODS & names.keys()):
        shown = ", ".join(repr(names[name]) for name in clash)
        raise UnsupportedModel(
            f"expected keys that differ from methods of tensors, got {shown}",
            "the target burn has them",
        )
    words = "|".join(map(re.escape, names))
    pattern = re.compile(rf"(?<!\bF)(?<!\bnn)(?<!\btorch)\.({words})\b")

    def renamed(line: str) -> str:
        return pattern.sub(lambda match: f".{names[match[1]]}", line)

    return [_with_lines(text, renamed) for text in texts]


def _with_lines(text: ClassText, change: Callable[[str], str]) -> ClassText:
    """Return ``text`` with ``change`` applied to each line."""
    methods = [
        replace(method, body=[change(line) for line in method.body])
        for method in text.methods
    ]
    fields = [change(line) for line in text.fields]
    body = [change(line) for line in text.body]
    return replace(text, fields=fields, body=body, methods=methods, record_names={})
