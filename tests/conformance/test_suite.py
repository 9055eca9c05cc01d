"""Every case of the suite, as it is and in every variant of it.

Without ``--all-cases`` this is a sample: one case of every operator, in a few variants.
"""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import pytest

from tests.conformance.expected_failures import FAILURES, VARIANT_FAILURES
from tests.conformance.suite import Case, cases
from tests.conformance.variants import VARIANTS, Variant
from tests.layout import as_printed

#: What the sample shows of a case.
SAMPLED = ("plain", "stored", "symbolic_no_passes")


def sample() -> Iterator[Case]:
    """The first case that each operator has for itself."""
    seen = set()
    for case in cases().values():
        if case.direct and case.operators[0] not in seen:
            seen.add(case.operators[0])
            yield case


@cache
def is_laid_out(variant: str, case: str) -> bool:
    """Whether black lays out the source: as it is, and those of the sample."""
    return variant == "plain" or variant in SAMPLED and case in sampled_names()


@cache
def sampled_names() -> frozenset[str]:
    """The names of the cases of the sample."""
    return frozenset(case.name for case in sample())


def chosen(every: bool) -> Iterator[tuple[Variant, Case]]:
    """What to run: a variant is of the cases that pass as they are."""
    for variant in VARIANTS.values():
        if not every and variant.name not in SAMPLED:
            continue
        for case in cases().values() if every else sample():
            fails = case.name in FAILURES
            if variant.name == "plain" or (variant.applies(case) and not fails):
                yield variant, case


def parameter(variant: Variant, case: Case) -> object:
    """One test, which is expected to fail if the tables say so."""
    marks = []
    if case.name in FAILURES:
        marks.append(pytest.mark.xfail(reason=FAILURES[case.name]))
    elif case.name in VARIANT_FAILURES.get(variant.name, ()):
        reason = VARIANT_FAILURES[variant.name][case.name]
        marks.append(pytest.mark.xfail(reason=reason))
    return pytest.param(variant, case, id=f"{variant.name}-{case.name}", marks=marks)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Return nothing; gives the cases to the tests that ask for one."""
    if "case" in metafunc.fixturenames:
        every = metafunc.config.getoption("--all-cases")
        metafunc.parametrize(
            ("variant", "case"), [parameter(*pair) for pair in chosen(every)]
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for the models of all cases, which overwrite each other."""
    return tmp_path_factory.mktemp("conformance")


def test_case(
    variant: Variant,
    case: Case,
    folder: Path,
    record_property: Callable[[str, object], None],
) -> None:
    record_property("case", [variant.name, case.name])
    with nullcontext() if is_laid_out(variant.name, case.name) else as_printed():
        variant.check(case, folder)


def test_the_tables_name_cases_that_are_run() -> None:
    names = cases()
    assert FAILURES.keys() <= names.keys()
    assert VARIANT_FAILURES.keys() <= VARIANTS.keys() - {"plain"}
    for name, table in VARIANT_FAILURES.items():
        run = {c.name for v, c in chosen(every=True) if v.name == name}
        assert table.keys() <= run, name


def test_every_case_has_data() -> None:
    assert all(case.sets for case in cases().values())
