"""Declarations against the schemas of the installed onnx."""

from dataclasses import MISSING, fields
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from burn_ir import operators
from burn_ir.op import COUNTS
from burn_ir.support_check import OPSETS, UNSUPPORTED

Key = tuple[str, str]

#: Versions in ONNX's domain that ONNX never had but other programs write.
OF_OTHERS: dict[Key, set[int]] = {("", "LayerNormalization"): {1}}

#: Operators that never become a node of the graph.
NOT_DECLARED = {("", "Constant"): "it is stored when the graph is built"}


def history() -> dict[Key, dict[int, Any]]:
    """Return the schemas of every operator by version, without deprecated ones."""
    results: dict[Key, dict[int, Any]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain in OPSETS and not schema.deprecated:
            key = (schema.domain, schema.name)
            results.setdefault(key, {})[schema.since_version] = schema
    return results


def deprecated() -> dict[Key, set[int]]:
    """Return the deprecated versions, which old files may still have."""
    results: dict[Key, set[int]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.deprecated:
            results.setdefault((schema.domain, schema.name), set()).add(
                schema.since_version
            )
    return results


HISTORY = history()
DEPRECATED = deprecated()
DECLARED = sorted(key for key in operators() if key in HISTORY)


@pytest.mark.parametrize("key", DECLARED, ids=lambda key: key[1])
def test_versions_are_the_whole_history(key: Key) -> None:
    declared = operators()[key].versions
    assert declared == tuple(sorted(declared))
    optional = DEPRECATED.get(key, set()) | OF_OTHERS.get(key, set())
    assert set(HISTORY[key]) <= set(declared) <= set(HISTORY[key]) | optional


@pytest.mark.parametrize("key", DECLARED, ids=lambda key: key[1])
def test_fields_are_the_newest_attributes(key: Key) -> None:
    schema = HISTORY[key][max(HISTORY[key])]
    declared = {
        f.name: f.default
        for f in fields(operators()[key])  # type: ignore[arg-type]
        if f.name not in COUNTS | {"function"}
    }
    expected = {name: default(a) for name, a in schema.attributes.items()}
    assert declared.keys() == expected.keys()
    different = {
        name: (declared[name], expected[name])
        for name in declared
        if not equal(declared[name], expected[name])
    }
    assert not different, "(declared, expected)"


def default(attribute: Any) -> Any:
    """Return an attribute's default: MISSING if required, None if optional."""
    if attribute.required:
        return MISSING
    if attribute.default_value.type == onnx.AttributeProto.UNDEFINED:
        return None
    value = helper.get_attribute_value(attribute.default_value)
    if isinstance(value, list):
        return tuple(v.decode() if isinstance(v, bytes) else v for v in value)
    return value.decode() if isinstance(value, bytes) else value


def equal(declared: Any, expected: Any) -> bool:
    if isinstance(expected, float):
        return bool(np.float32(declared) == np.float32(expected))
    return type(declared) is type(expected) and bool(declared == expected)


def test_every_operator_of_onnx_is_declared_or_unsupported() -> None:
    assert not UNSUPPORTED.keys() & set(DECLARED)
    assert set(HISTORY) - set(DECLARED) - set(NOT_DECLARED) == UNSUPPORTED.keys()


def test_every_upgrade_is_of_an_old_version() -> None:
    wrong = [op.onnx for op in operators().values() if op.versions[-1] in op.upgrades]
    assert not wrong
