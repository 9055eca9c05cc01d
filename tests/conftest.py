"""Settings and options that every test shares."""

import gc
import os
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory, mkdtemp

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import core, settings

from burn_import.codegen.module import formatting, module
from tests import sampling, skips
from tests.bytecode import share_bytecode
from tests.written_modules import Modules

ROOT = Path(__file__).parent.parent

settings.register_profile(
    "default", derandomize=True, deadline=None, max_examples=30, database=None
)
#: Of a plain run; ``--all-cases`` takes the one above.
settings.register_profile("sample", settings.get_profile("default"), max_examples=9)
settings.register_profile("nightly", deadline=None, max_examples=200)
settings.load_profile("default")
# Hypothesis seeds a case with a digest of the test's source, which it reads and
# tokenizes twice for each of thousands of cases.
if hasattr(core, "function_digest"):  # a private name, which may change
    core.function_digest = cache(core.function_digest)
#: How many random graphs a plain run compares, and one with ``--all-cases``.
FEW_GRAPHS, GRAPHS = 5, 60
#: How long each reader is fuzzed by default.
FUZZ_SECONDS = 0.2
#: What ``--durations`` shows by default takes at least so many seconds.
_SHORTEST_SHOWN = 0.005
#: Random graphs, and seconds of fuzzing a reader, of ``--nightly``.
NIGHTLY = (200, 3600.0)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Return nothing; adds the options of this repository."""
    group = parser.getgroup("burn-import")
    _add_selections(group)
    _add_folders(group)
    _add_fuzzing(group)


def _add_selections(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--update-golden",
        action="store_true",
        help="write the sources and recorded outputs under tests/golden anew",
    )
    group.addoption(
        "--all-cases",
        action="store_true",
        help="run every case, not a sample: as .ci/run does",
    )
    text = "all cases, at the sizes of a night: examples, graphs, faults, fuzzing"
    group.addoption("--nightly", action="store_true", help=text)
    text = "build and install the packages of tests/packaging with the package index"
    group.addoption("--packaging", action="store_true", help=text)


def _add_folders(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--zoo",
        type=Path,
        default=ROOT.parent / "shared" / "zoo",
        metavar="FOLDER",
        help="trained models with recorded outputs, which are not in the repository",
    )
    group.addoption(
        "--burn-fixtures",
        type=Path,
        default=ROOT.parent / "shared" / "burn-fixtures",
        metavar="FOLDER",
        help="small models with recorded outputs, which are not in the repository",
    )


def _add_fuzzing(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--fuzz-seconds",
        type=float,
        metavar="SECONDS",
        help="how long each reader gets damaged files, and plans get random graphs "
        f"({FUZZ_SECONDS})",
    )
    group.addoption(
        "--fuzz-graphs",
        type=int,
        metavar="N",
        help="how many random graphs tests/fuzz compares with onnxruntime "
        f"({FEW_GRAPHS}, with --all-cases {GRAPHS})",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Set what depends on whether every case is run, and folders for caches.

    Processes that tests start inherit the folder: no test reads or writes the user's.
    """
    if not hasattr(config, "workerinput"):
        folder = TemporaryDirectory(prefix="burn-tests-", ignore_cleanup_errors=True)
        config.add_cleanup(folder.cleanup)
        os.environ["XDG_CACHE_HOME"] = folder.name
    share_bytecode(config)
    _set_sizes(config)


def _set_sizes(config: pytest.Config) -> None:
    """Set the sizes that no option gives, and the profile of Hypothesis."""
    options = config.option
    if options.nightly:
        options.all_cases = True
    sizes = (GRAPHS if options.all_cases else FEW_GRAPHS, FUZZ_SECONDS)
    graphs, seconds = NIGHTLY if options.nightly else sizes
    if options.fuzz_graphs is None:
        options.fuzz_graphs = graphs
    if options.fuzz_seconds is None:
        options.fuzz_seconds = seconds
    if config.getoption("--hypothesis-profile", None):
        return
    if options.nightly:
        settings.load_profile("nightly")
    elif not options.all_cases:
        settings.load_profile("sample")


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Deselect what the run leaves to one with more cases."""
    if config.option.nightly:
        return
    is_selected = bool(config.option.keyword)
    if not config.option.all_cases:
        deselected = set(sampling.left_out(items, is_selected))
    elif not is_selected:
        deselected = set(filter(sampling.is_nightly, items))
    else:
        return
    config.hook.pytest_deselected(items=list(deselected))
    items[:] = [item for item in items if item not in deselected]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs the package index, unless it is asked for, or a CUDA device."""
    if item.get_closest_marker("packaging") and not item.config.option.packaging:
        pytest.skip("installs from the package index; --packaging runs it")
    if item.get_closest_marker("cuda") and not _has_cupy():
        pytest.skip("could not import 'cupy'")


@cache
def _has_cupy() -> bool:
    """Return whether CuPy is installed: two thousand tests would search for it."""
    return find_spec("cupy") is not None


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Run a test as pytest does, without reports that say nothing.

    A worker of pytest-xdist would also send the reports of each setup and teardown
    that succeeds at once, which takes two processes as long as a small test.
    """
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        is_short = report.passed and report.duration < _SHORTEST_SHOWN
        if report.when == "call" or not is_short:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print how many tests were skipped for which reason."""
    counts, unexplained = skips.counted(terminalreporter.stats.get("skipped", []))
    for kind, count in counts.most_common():
        terminalreporter.write_line(f"{count:6} skipped: {kind}")
    for line in unexplained:
        terminalreporter.write_line(f"unexplained skip: {line}", red=True)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run in which a skip has no row in ``tests/skips.py``."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter is not None else []
    if session.exitstatus == 0 and skips.counted(skipped)[1]:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect tests without garbage collection, which would find nothing to free."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Exempt the collected items from garbage collection.

    A million objects that live until the end were traversed again in every full
    collection: half of the time of tests that make many objects.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def layouts() -> Iterator[None]:
    """Lay out each generated text once: many cases differ in their arrays alone."""
    with pytest.MonkeyPatch.context() as patch:
        cached = lru_cache(10_000)(formatting.format_emitted)
        patch.setattr(module, "format_emitted", cached)
        yield


@pytest.fixture
def tmp_path(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return a new folder.

    pytest's fixture of this name reads the names of the folders of all tests before
    to number one, which takes 5 ms after 5 000 tests.
    """
    prefix = re.sub(r"\W", "_", request.node.name)[:30]
    return Path(mkdtemp(prefix=f"{prefix}_", dir=tmp_path_factory.getbasetemp()))


@pytest.fixture(scope="session")
def mypy_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of mypy's cache for the runtime.

    It begins with the cache of mypy's own runs at the root, which have the same
    options: .ci/run checks the whole project before its tests.
    """
    folder = tmp_path_factory.mktemp("mypy")
    if (ROOT / ".mypy_cache").is_dir():
        # With the times of the files, by which mypy knows that they are valid.
        copytree(ROOT / ".mypy_cache", folder, dirs_exist_ok=True)
    return folder


@pytest.fixture
def nightly(request: pytest.FixtureRequest) -> bool:
    """Return whether the run has the sizes of a night."""
    return bool(request.config.option.nightly)


@pytest.fixture(scope="session")
def modules(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Modules:
    """Return the modules of model files that processes of pytest-xdist share."""
    base = tmp_path_factory.getbasetemp()
    is_worker = hasattr(request.config, "workerinput")
    return Modules((base.parent if is_worker else base) / "modules")
