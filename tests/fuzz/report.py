"""A small failing case as a finished test for ``tests/fuzz/test_found.py``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx.printer

from tests.fuzz.checks import Finding
from tests.fuzz.generator import FuzzCase

_TEMPLATE = '''\
def {name}() -> None:
    """{what}"""
    text = """{model}"""
    first: dict[str, Any] = {first}
    second: dict[str, Any] = {second}
    third: dict[str, Any] = {third}
    case = case_of(text, first, second, third, profile={profile!r})
    report = report_of(case, thorough=True)
    assert (report.kind, report.findings) == ("right", []), report.detail
'''


def source_of_test(case: FuzzCase, finding: Finding, seed: str) -> str:
    """The text of a test function that fails as ``finding`` says.

    It needs ``np``, ``case_of`` and ``report_of`` of ``tests/fuzz/test_found.py``.
    """
    words = re.sub(r"[^a-z0-9]+", "_", f"{finding.check} {finding.kind}".lower())
    name = f"test_{words.strip('_')}_{re.sub(r'[^a-z0-9]+', '_', seed)}"
    feeds = [*case.feeds, *case.feeds[:1] * 3][:3]
    first, second, third = (_feeds(one) for one in feeds)
    second, third = ("first" if x == first else x for x in (second, third))
    detail = finding.detail.replace("\\", "/").replace('"', "'")[:70]
    return _TEMPLATE.format(
        name=name,
        what=f"{finding.kind.capitalize()}: {detail}",
        model=model_text(case.model),
        first=first,
        second=second,
        third=third,
        profile="networks" if case.profile == "networks" else "mixed",
    )


def model_text(model: onnx.ModelProto) -> str:
    """``model`` as text that ``onnx.parser`` reads, for a literal in triple quotes.

    Hexadecimal bytes stand in for what text cannot say: the text of the parser has no
    numbers that are not finite, and no names with quotes.
    """
    text = onnx.printer.to_text(model)
    try:
        parsed = onnx.parser.parse_model(text)
    except onnx.parser.ParseError:
        parsed = None
    if parsed is None or not _is_same(parsed, model):
        encoded: bytes = model.SerializeToString()
        return encoded.hex()
    return text.replace("\\", "\\\\").replace('"""', '\\"""')


def model_of(text: str) -> onnx.ModelProto:
    """The model that :func:`model_text` wrote."""
    if re.fullmatch("[0-9a-f]+", text):
        decoded = onnx.ModelProto()
        decoded.ParseFromString(bytes.fromhex(text))
        return decoded
    parsed: onnx.ModelProto = onnx.parser.parse_model(text)
    return parsed


def _is_same(parsed: onnx.ModelProto, model: onnx.ModelProto) -> bool:
    """Return whether text kept the nodes and the stored arrays of ``model``."""
    a, b = parsed.graph, model.graph
    if [n.SerializeToString() for n in a.node] != [
        n.SerializeToString() for n in b.node
    ]:
        return False
    stored = [
        {i.name: onnx.numpy_helper.to_array(i) for i in g.initializer} for g in (a, b)
    ]
    return stored[0].keys() == stored[1].keys() and all(
        np.array_equal(stored[0][name], stored[1][name]) for name in stored[0]
    )


def _feeds(feeds: Mapping[str, Any]) -> str:
    items = [f"        {name!r}: {literal(value)}," for name, value in feeds.items()]
    return "\n".join(["{", *items, "    }"]) if items else "{}"


def literal(value: Any) -> str:
    """An array or a list of arrays as source that makes it."""
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    if value is None:
        return "None"
    array = np.asarray(value)
    dtype = "object" if array.dtype.kind in "OUST" else f"np.{array.dtype.name}"
    if array.dtype.kind == "b":
        dtype = "np.bool_"
    numbers = re.sub(r"\b(nan|inf)\b", r"np.\1", repr(array.tolist()))
    shape = f".reshape({list(array.shape)})" if array.size == 0 else ""
    return f"np.array({numbers}, {dtype}){shape}"
