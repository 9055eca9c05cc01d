"""NamedTuples for the results of the model, and of modules with more than three."""

from collections.abc import Sequence
from dataclasses import replace

from burn_import.codegen.class_text import ClassText, ResultClass
from burn_import.codegen.printing.name_candidates import MOST_IN_TUPLE
from burn_import.structure.shared_classes import tuple_name
from burn_import.tracing.identifiers import FORBIDDEN, Namespace, camel


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
    results = [_with_result(text, _class_of(text, texts, by_class)) for text in texts]
    undefined = {one.name: one for one in by_class.values()}
    return [
        replace(text, result_class=undefined.pop(text.result, None)) for text in results
    ]


def _has_result_class(text: ClassText) -> bool:
    if text.root:
        return len(text.result_fields) > 1
    return len(text.result_fields) > MOST_IN_TUPLE and text.returned_module is None


def _class_of(
    text: ClassText, texts: Sequence[ClassText], by_class: dict[str, ResultClass]
) -> ResultClass | None:
    """Return the NamedTuple that ``text``, or the submodule that it calls, returns."""
    module = text.returned_module
    if module is None:
        return by_class.get(text.name)
    called = next((one for one in texts if one.name == module.class_name), None)
    return None if called is None else _class_of(called, texts, by_class)


def _result_name(text: ClassText, names: Namespace) -> tuple[str, str]:
    """Return the name of the NamedTuple that ``text`` returns, and what returns it."""
    if text.root:
        return text.result, "the model"
    owner = text.function or text.name
    name = tuple_name(camel(owner, "Part") if text.function else owner)
    name = name if name not in names.names else f"{name}s"
    return names.unique(name), f"``{owner}``"


def _with_result(text: ClassText, owner: ResultClass | None) -> ClassText:
    """Return ``text`` with ``owner`` as the class of its results, if there is one."""
    if text.root or owner is None:
        return text
    body = text.body
    if text.returned_module is None:
        last = body[-1].replace("return ", f"return {owner.name}(", 1)
        body = [*body[:-1], f"{last})"]
    return replace(text, result=owner.name, body=body)
