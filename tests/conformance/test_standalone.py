"""Cases of the suite as standalone modules: NumPy alone gives what is expected.

Of the cases of an operator, whose modules have copies of the same functions, six that
are spread over all are compared, all with ``--nightly``, and one without
``--all-cases``. Expansions of operators into functions are left out: other cases have
each of their operators.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn_import.compiler import compile_graph
from burn_import.options import Options
from burn_import.standalone import standalone
from burn_ir import UnsupportedModel
from tests.conformance.compare import assert_similar
from tests.conformance.expected_failures import FAILURES
from tests.conformance.run import built, to_arrays
from tests.conformance.suite import Case, cases
from tests.conformance.test_suite import sample
from tests.layout import as_printed
from tests.standalone import import_alone

#: Operators that need more than NumPy.
REFUSED = {
    "ai.onnx.preview.training:Gradient",
    "ImageDecoder",
    "RegexFullMatch",
}


#: How many cases of an operator are compared.
MOST = 6


def comparable(case: Case) -> bool:
    """Return whether a case passes as it is, and no other shows the same."""
    return case.name not in FAILURES and case.kind != "light" and not case.is_expanded


def spread(chosen: Iterable[Case]) -> Iterator[object]:
    """Return the parameters of the test; all but ``MOST`` of an operator are marked."""
    key = attrgetter("operators")
    for _, group in groupby(sorted(chosen, key=key), key):
        alike = list(group)
        kept = {len(alike) * number // MOST for number in range(MOST)}
        for number, case in enumerate(alike):
            marks = [] if number in kept else [pytest.mark.nightly]
            yield pytest.param(case, id=case.name, marks=marks)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Return nothing; gives the cases to the test."""
    every = metafunc.config.getoption("--all-cases")
    chosen = filter(comparable, cases().values() if every else sample())
    metafunc.parametrize("case", list(spread(chosen)))


@pytest.mark.sampled(8)
def test_case(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proto = case.model()
    graph = built(proto, tmp_path)
    options = Options(class_name="Net")
    with as_printed():
        source = compile_graph(graph, options, options.weights)
        if REFUSED.intersection(case.operators):
            with pytest.raises(UnsupportedModel, match="needs NumPy alone"):
                standalone(source.text)
            return
        text = standalone(source.text)
    path = tmp_path / "net.py"
    path.write_text(text, "ascii")
    file = import_alone(path, monkeypatch)
    model = file.Net().load_state_dict(dict(source.weights))
    for data in case.data_sets(proto.graph):
        result = model(*(given(file, value) for value in data.inputs))
        results = result if isinstance(result, tuple) else (result,)
        assert_similar([to_arrays(x) for x in results], data.outputs, case.tolerance)


def given(file: Any, value: Any) -> Any:
    """A value of a data set as a standalone module takes it."""
    if isinstance(value, list):
        return [given(file, item) for item in value]
    if isinstance(value, dict):
        return {key: given(file, item) for key, item in value.items()}
    return None if value is None else file.tensor(np.asarray(value))
