"""Every case of the suite, as it is and in every variant of it.

Without ``--all-cases`` this is a sample: one case of every operator, in a few variants.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.checks import CaseChecker, Outcomes
from tests.conformance.expected_failures import FAILURES, VARIANT_FAILURES
from tests.conformance.suite import Case, cases
from tests.conformance.variants import VARIANTS, Variant, variants_of

#: What the sample shows of a case.
SAMPLED = ("plain", "stored", "symbolic_no_passes")


def sample() -> Iterator[Case]:
    """The first case that each operator has for itself."""
    seen = set()
    for case in cases().values():
        if case.direct and case.operators[0] not in seen:
            seen.add(case.operators[0])
            yield case


def chosen_variants(case: Case, option: Any) -> Iterator[Variant]:
    """The variants to run; a case that fails as it is has no other."""
    plain, *others = variants_of(case, option.nightly)
    yield plain
    if case.name not in FAILURES:
        yield from (v for v in others if option.all_cases or v.name in SAMPLED)


def parameter(case: Case) -> object:
    """One test, which is expected to fail if the table says so."""
    marks = []
    if case.name in FAILURES:
        marks.append(pytest.mark.xfail(reason=FAILURES[case.name]))
    return pytest.param(case, id=case.name, marks=marks)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Return nothing; gives the cases to the tests that ask for one."""
    if "case" in metafunc.fixturenames:
        every = metafunc.config.getoption("--all-cases")
        chosen = cases().values() if every else sample()
        metafunc.parametrize("case", [parameter(case) for case in chosen])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for the models of all cases, which overwrite each other."""
    return tmp_path_factory.mktemp("conformance")


def test_case(
    case: Case,
    folder: Path,
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
) -> None:
    checker, outcomes = CaseChecker(case, folder), Outcomes()
    for variant in chosen_variants(case, request.config.option):
        fails = case.name in VARIANT_FAILURES.get(variant.name, ())
        with outcomes.of(variant.name, fails):
            checker.check(variant, is_laid_out=variant.name == "plain")
    record_property("case", [case.name, outcomes.passed])
    if outcomes.errors:
        raise ExceptionGroup(case.name, outcomes.errors)


def test_the_tables_name_cases_that_are_run() -> None:
    names = cases()
    assert FAILURES.keys() <= names.keys()
    assert VARIANT_FAILURES.keys() <= VARIANTS.keys() - {"plain"}
    for name, table in VARIANT_FAILURES.items():
        for case in map(names.__getitem__, table):
            assert VARIANTS[name] in variants_of(case), (name, case.name)


def test_every_case_has_data() -> None:
    assert all(case.sets for case in cases().values())
