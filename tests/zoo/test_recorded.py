"""Third-party models, generated, written, imported from disk and compared.

They are not in the repository: ``--zoo`` and ``--burn-fixtures`` say where they are.
Every file is compared with every recorded call of it, at every size. What uses
operators that are still to be built is refused, and exactly these are named.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.written_modules import Modules
from tests.zoo.known import FAILING, REFUSED, UNRECORDED
from tests.zoo.recorded import Case, fixture_cases, zoo_cases

#: How many files there are below each folder of the zoo, and among the fixtures.
ZOO = {"arch": 159, "pytorch": 19, "quant": 39, "sklearn": 27}
FIXTURES = 528
#: Models of more nodes are among those marked ``models``.
SMALL = 300


def of_zoo(zoo: Path) -> Iterator[Case]:
    """Return the cases of the folders above."""
    return (case for case in zoo_cases(zoo) if case.name.split("/")[0] in ZOO)


def listed(
    folder: Path, read: Callable[[Path], Iterator[Case]], option: str
) -> list[object]:
    """Return the parameters of the test: one for each file, or one that is skipped."""
    if not (folder / "manifest.json").is_file():
        count = FIXTURES if option == "--burn-fixtures" else sum(ZOO.values())
        reason = f"no models in {folder.name}/ (see {option}): {count} not checked"
        return [pytest.param(None, id=option, marks=pytest.mark.skip(reason=reason))]
    return [
        pytest.param(
            case, id=case.name, marks=[pytest.mark.models] * (case.nodes > SMALL)
        )
        for case in read(folder)
    ]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Return nothing; one test for each file."""
    if "case" in metafunc.fixturenames:
        option = metafunc.config.getoption
        result = listed(option("--zoo"), of_zoo, "--zoo")
        result += listed(option("--burn-fixtures"), fixture_cases, "--burn-fixtures")
        metafunc.parametrize("case", result)


def test_the_folders_are_complete(request: pytest.FixtureRequest) -> None:
    zoo: Path = request.config.getoption("--zoo")
    fixtures: Path = request.config.getoption("--burn-fixtures")
    if not all((folder / "manifest.json").is_file() for folder in (zoo, fixtures)):
        pytest.skip(f"{sum(ZOO.values())} + {FIXTURES} models need both folders")
    names = [case.name for case in of_zoo(zoo)]
    actual = {kind: sum(name.startswith(f"{kind}/") for name in names) for kind in ZOO}
    assert actual == ZOO
    names += [case.name for case in fixture_cases(fixtures)]
    assert len(names) == sum(ZOO.values()) + FIXTURES
    assert {*FAILING, *REFUSED} <= set(names)


@pytest.mark.sampled(12)
def test_what_is_recorded_is_computed(case: Case, modules: Modules) -> None:
    if case.name in REFUSED:
        kind, message = REFUSED[case.name]
        with pytest.raises(kind, match=message):
            case.check(modules)
    elif case.name in FAILING:
        with pytest.raises((AssertionError, ValueError)):
            case.check(modules)
        pytest.xfail(FAILING[case.name])
    else:
        assert (case.name in UNRECORDED) == (not case.goldens)
        case.check(modules)
