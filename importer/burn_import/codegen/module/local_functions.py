"""Local functions of a model as functions of the Python module."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from burn_import.codegen.class_text import ClassText
from burn_import.tracing.identifiers import snake


def as_functions(
    texts: Sequence[ClassText], functions: Collection[str]
) -> list[ClassText]:
    """Return ``texts`` with the classes named in ``functions`` as functions.

    Functions with weights stay classes, as do those in lists, those called by
    modules other than their owner, and those whose name is also the name of a
    value.
    """
    reserved = set(re.findall(r"\w+", "\n".join(map(_words, texts))))
    for text in list(texts):
        name = snake(text.name, "function")
        bare = not (text.fields or text.constructor or text.methods or text.root)
        fits = text.name in functions and bare and text.body and name not in reserved
        fits = fits and not any("(self)" in line for line in text.body)
        if fits and _is_called_by_owners(texts, text.name):
            texts = [_with_function_calls(other, text.name, name) for other in texts]
            reserved.add(name)
    return list(texts)


def _words(text: ClassText) -> str:
    attributes = [line.partition(" = ")[0].rpartition(".")[2] for line in text.fields]
    methods = [line for m in text.methods for line in (m.name, m.signature, *m.body)]
    return "\n".join([text.signature, *text.body, *attributes, *methods])


def _is_called_by_owners(texts: Sequence[ClassText], class_name: str) -> bool:
    """Return whether only classes with an attribute for it call a class."""
    if not all(_only_called(text, class_name) for text in texts):
        return False
    fields = [line for text in texts for line in text.fields]
    owned = [
        line.partition(" = ")[0]
        for line in fields
        if line.endswith(f" = {class_name}()")
    ]
    names = "|".join(re.escape(name.removeprefix("self.")) for name in owned)
    # ``self.self`` is a submodule that the file calls ``self``.
    inside = re.compile(rf"(?:(?<!\bself)|(?<=\.self))\.({names})\(")
    return not names or not any(inside.search(_words(text)) for text in texts)


def _only_called(text: ClassText, class_name: str) -> bool:
    """Return whether a class uses ``class_name`` only for direct attributes."""
    lines = [line for line in (*text.fields, text.steps) if f"{class_name}(" in line]
    return all(re.fullmatch(rf"self\.\w+ = {class_name}\(\)", line) for line in lines)


def _with_function_calls(text: ClassText, class_name: str, name: str) -> ClassText:
    """Return ``text`` with calls of attributes replaced by calls of ``name``."""
    if text.name == class_name:
        body = [line.removeprefix("    ") for line in text.body]
        return replace(text, function=name, body=body)
    assignments = [line for line in text.fields if line.endswith(f" = {class_name}()")]
    body, methods = text.body, text.methods
    for line in assignments:
        attribute = line.partition(" = ")[0]
        call = re.compile(rf"{re.escape(attribute)}\(")
        body = [call.sub(f"{name}(", one) for one in body]
        methods = [
            replace(m, body=[call.sub(f"{name}(", one) for one in m.body])
            for m in methods
        ]
    fields = [line for line in text.fields if line not in assignments]
    return replace(text, fields=fields, body=body, methods=methods)
