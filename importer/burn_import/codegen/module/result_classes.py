"""NamedTuples for the results of the model, and of modules with more than three."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from burn_import.codegen.class_text import ClassText, ResultClass
from burn_import.codegen.printing.name_candidates import MOST_IN_TUPLE
from burn_import.structure.shared_classes import tuple_name
from burn_import.tracing.identifiers import FORBIDDEN, Namespace, camel

_CALL = re.compile(r"\s*return self\.(\w+)\(")
_MODULE = re.compile(r"self\.(\w+)(?:: [^=]*)? = (\w+)\(")


def with_result_classes(texts: Sequence[ClassText]) -> list[ClassText]:
    """Return the classes, the first that returns a NamedTuple with its definition.

    ``texts`` have their final names, and begin with the root, whose body already
    returns a NamedTuple. A class that returns what a submodule returns has no
    NamedTuple of its own. Annotations are evaluated, so that each NamedTuple stands
    before the first class that returns it.
    """
    names = Namespace([*FORBIDDEN, *(text.name for text in texts)])
    names.unique(texts[0].result)
    by_class = {
        text.name: ResultClass(*_result_name(text, names), text.result_fields)
        for text in texts
        if _has_result_class(text)
    }
    results = [_with_result(text, by_class) for text in texts]
    undefined = {one.name: one for one in by_class.values()}
    return [
        replace(text, result_class=undefined.pop(text.result, None)) for text in results
    ]


def _has_result_class(text: ClassText) -> bool:
    if text.root:
        return len(text.result_fields) > 1
    return len(text.result_fields) > MOST_IN_TUPLE and not _passed(text)


def _result_name(text: ClassText, names: Namespace) -> tuple[str, str]:
    """Return the name of the NamedTuple that ``text`` returns, and what returns it."""
    if text.root:
        return text.result, "the model"
    owner = text.function or text.name
    name = tuple_name(camel(owner, "Part") if text.function else owner)
    name = name if name not in names.names else f"{name}s"
    return names.unique(name), f"``{owner}``"


def _passed(text: ClassText) -> str:
    """Return the class of the submodule whose results ``text`` returns, else ""."""
    match = _CALL.match(text.body[-1])
    fields = filter(None, map(_MODULE.match, text.fields))
    modules = {field[1]: field[2] for field in fields}
    return modules.get(match[1], "") if match else ""


def _with_result(text: ClassText, by_class: dict[str, ResultClass]) -> ClassText:
    """Return ``text`` with a body that returns the NamedTuple, if there is one."""
    if text.root or len(text.result_fields) <= MOST_IN_TUPLE:
        return text
    own = by_class.get(text.name)
    if own is None:
        passed = by_class.get(_passed(text))
        return text if passed is None else replace(text, result=passed.name)
    start, word, values = text.body[-1].partition("return ")
    last = f"{start}{word}{own.name}({values})"
    return replace(text, result=own.name, body=[*text.body[:-1], last])
