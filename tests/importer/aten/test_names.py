"""No operator of ATen is missing silently: it has a rule, or a reason."""

import json
from pathlib import Path

import pytest

from burn_import.frontends.torch_export.aten import COMPLEX, RULES
from burn_import.frontends.torch_export.unsupported import UNSUPPORTED, refusal_reason
from tests.importer.aten import families, page

#: The Core ATen operators, and others in PyTorch's exports of layers and functions;
#: ``python -m tests.importer.aten.names`` updates them.
NAMES = json.loads(Path(__file__).with_name("names.json").read_text("utf-8"))


@pytest.mark.parametrize("kind", ["core", "exported", "overloads"])
def test_every_operator_has_a_rule_or_a_reason(kind: str) -> None:
    names = {*RULES, *COMPLEX, *UNSUPPORTED}
    assert [name for name in NAMES[kind] if name not in names] == []


def test_every_core_operator_has_a_rule() -> None:
    assert len(NAMES["core"]) == 193
    assert [n for n in NAMES["core"] if n not in {*RULES, *COMPLEX}] == []


def test_what_has_a_rule_is_not_called_unsupported() -> None:
    both = (*RULES.items(), *COMPLEX.items())
    plain = {name for name, entry in both if entry.mutates is None}
    assert sorted(plain & set(UNSUPPORTED)) == []


def test_refusals_say_what_was_expected() -> None:
    assert refusal_reason("aten.frobnicate.default") == "this operator is not supported"
    assert "matrix decomposition" in refusal_reason("aten.linalg_eig.default")
    expected = "expected an overload among Scalar, Tensor, got out"
    assert refusal_reason("aten.eq.out") == expected


def test_cases_call_what_has_a_rule() -> None:
    names = {*RULES, *COMPLEX}
    assert [c.name for c in families.CASES if c.target not in names] == []


def test_the_page_is_up_to_date() -> None:
    assert page.PAGE.read_text("utf-8") == page.page(), f"run python -m {page.__name__}"
