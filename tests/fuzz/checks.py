"""The checks of one graph: every way to run it gives what onnxruntime gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

from burn_import.options import Options
from burn_import.passes import PASSES
from burn_ir import ModelError
from tests.fuzz.compare import difference
from tests.fuzz.errors.discontinuous import jumping_outputs
from tests.fuzz.errors.precision import check_dtype
from tests.fuzz.errors.rounding import (
    FINE,
    noise_of_rounding,
    spreads_of_rounding,
    within_spreads,
)
from tests.fuzz.generator import FuzzCase
from tests.fuzz.gradients.slopes import check_pass_slopes
from tests.fuzz.gradients.training import check_training
from tests.fuzz.nodes import are_differences_explained
from tests.fuzz.oracle import (
    Discarded,
    Oracle,
    check,
    noise_of_constants,
    reference_outputs,
)
from tests.fuzz.passes import check_passes
from tests.fuzz.rules.not_finite import is_not_finite
from tests.fuzz.subject import IMPORTS, called, compiled_calls, imported

#: What may come out of code that has a defect.
CRASHES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    BufferError,
    ImportError,
    LookupError,
    MemoryError,
    NameError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)
#: The inputs of a graph, in the order of ``FuzzCase.feeds``.
FIRST, SECOND, NOT_FINITE = "first size", "second size", "not finite"
LABELS = (FIRST, SECOND, NOT_FINITE)

#: Passes that say of themselves: results are finite that were not.
FINITE = ("softmax", "softplus")
#: How much larger the errors of lower precisions are, and the steps they are made of.
BF16, INT8 = 1000, 3000
STEPS: dict[float, float] = {1: FINE, BF16: 2.0**-9, INT8: 2.0**-7}


@dataclass(frozen=True)
class Finding:
    """A way to run a graph in which it is not right.

    ``kind`` is ``"refused"``, ``"different"``, ``"crashed"``, or ``"disputed"`` if
    ONNX's reference evaluator gives what we do; ``inputs`` says on which inputs.
    """

    kind: str
    check: str
    detail: str
    inputs: str = ""

    @property
    def signature(self) -> tuple[str, str, bool]:
        """Return the key that distinguishes kinds of failures."""
        return self.kind, self.check, self.inputs == NOT_FINITE


@dataclass
class Report:
    """What came of one graph: ``kind`` is also ``"right"`` or ``"discarded"``."""

    seed: int
    kind: str
    findings: list[Finding] = field(default_factory=list)
    detail: str = ""
    operators: set[tuple[str, str]] = field(default_factory=set)


@dataclass(frozen=True)
class Run:
    """Inputs with the outputs expected of them, and the noise on these.

    ``rounding`` gives the noise that errors of a step inside of the graph make, and
    ``spreads`` what those of rounding make of each element.
    """

    label: str
    feeds: Mapping[str, Any]
    expected: list[Any]
    noise: list[float]
    rounding: Callable[[float], list[float]]
    spreads: Callable[[], list[list[Any]] | None]


def report_of(case: FuzzCase, thorough: bool | None = None) -> Report:
    """Return the report about ``case``.

    ``thorough`` runs generated kernels and lower precisions as well; None does so for
    one seed of eight.
    """
    try:
        check(case.model)
        runs = expected_runs(case)
    except Discarded as error:
        return Report(case.seed, "discarded", detail=str(error))
    thorough = case.seed % 8 == 0 if thorough is None else thorough
    findings = list(findings_of(case, runs, thorough))
    order = ("crashed", "different", "refused", "disputed")
    kinds = [kind for kind in order if any(f.kind == kind for f in findings)]
    kind = kinds[0] if kinds else "right"
    return Report(case.seed, kind, findings, operators=case.operators)


def expected_runs(case: FuzzCase) -> list[Run]:
    """Both sizes of the inputs, and inputs that are not finite if those run.

    Raises:
        Discarded: onnxruntime does not run the graph, or gives something else than its
            nodes do one by one, as where it writes over an operand too early.
    """
    oracle = Oracle(case.model)
    noise = [case.noise[o.name] for o in case.model.graph.output]
    runs = []
    for label, feeds in zip(LABELS, case.feeds, strict=True):
        try:
            rounding = cache(partial(noise_of_rounding, case, feeds))
            spreads = cache(partial(spreads_of_rounding, case, feeds))
            expected = oracle.outputs(feeds)
            runs.append(Run(label, feeds, expected, noise, rounding, spreads))
        except Discarded:
            if label != NOT_FINITE:
                raise
    for run, pieces in zip(runs, case.pieces, strict=False):
        text = difference(run.expected, pieces, noise)
        if text is not None:
            raise Discarded(f"onnxruntime contradicts itself: {text}")
    extra = [noise_of_constants(case.model, r.feeds, r.expected) for r in runs[:2]]
    noise = [max(each) for each in zip(noise, *extra, strict=True)]
    return [replace(run, noise=noise) for run in runs]


def findings_of(case: FuzzCase, runs: list[Run], thorough: bool) -> Iterator[Finding]:
    """All that is not right about a graph."""
    try:
        with imported(case.model, IMPORTS["no passes"]) as module:
            compared = [_with_own_results(run, case, module) for run in runs]
        yield from (finding for _, finding in compared if finding is not None)
        runs = [run for run, _ in compared if run is not None]
        for name, options in IMPORTS.items():
            with imported(case.model, options) as module:
                own = [of_finite_passes(run, case, module, options) for run in runs]
                yield from _eager(module, own, name)
                if name == "default":
                    skipped = jumping_outputs(case.model)
                    yield from _compiled(module, own, thorough, skipped)
                    yield from _compiled_not_finite(module, runs)
        for check_name, text in check_passes(case):
            yield Finding("different", check_name, text)
        for check_name, text in _further(case):
            yield Finding("different", check_name, text)
    except ModelError as error:
        yield Finding("refused", "import", str(error)[:400])
    except CRASHES as error:
        yield Finding("crashed", "import", described(error))


def _further(case: FuzzCase) -> Iterator[tuple[str, str]]:
    """Checks that take long: of all networks, and of some seeds of other profiles."""
    if case.profile == "networks" or case.seed % 4 == 3:
        yield from check_pass_slopes(case)
        yield from check_training(case)
    if case.seed % (2 if case.profile == "networks" else 4) == 1:
        yield from check_dtype(case)


def _with_own_results(
    run: Run, case: FuzzCase, module: Any
) -> tuple[Run | None, Finding | None]:
    """``run`` with our own results where onnxruntime is no reference for them.

    None in place of it if there are no results to compare. Other ways to run the graph
    are compared with these results, so that what is explained hides nothing there.
    """
    if run.label == NOT_FINITE:
        run = replace(run, noise=[10 * n for n in run.noise])
    try:
        got = called(module, run.feeds)
    except CRASHES as error:
        if run.label == NOT_FINITE and are_differences_explained(case, run.feeds):
            return None, None
        return run, Finding("crashed", "eager no passes", described(error), run.label)
    text = difference_beyond_noise(got, run)
    if text is None:
        return run, None
    if run.label == NOT_FINITE and are_differences_explained(case, run.feeds):
        return replace(run, expected=got), None
    other = reference_outputs(case.model, run.feeds)
    if other is not None and difference(got, other, run.noise) is None:
        return replace(run, expected=got), Finding("disputed", "", text, run.label)
    return run, None


def of_finite_passes(run: Run, case: FuzzCase, module: Any, options: Options) -> Run:
    """``run`` with the results of ``module`` if a pass of ``FINITE`` changes them.

    A softmax of an infinity is NaN in all elements, and the quotient of exponentials in
    one of them.
    """
    if run.label != NOT_FINITE or options.passes is not None:
        return run
    try:
        got = called(module, run.feeds)
        if difference_beyond_noise(got, run) is None:
            return run
        names = tuple(p.__name__ for p in PASSES if p.__name__ not in FINITE)
        with imported(case.model, replace(options, passes=names)) as other:
            without = called(other, run.feeds)
    except CRASHES:
        return run
    same = difference_beyond_noise(without, run) is None
    return replace(run, expected=got) if same else run


def described(error: BaseException) -> str:
    """The type and text of an error and the last place in our code."""
    trace = error.__traceback__
    location = ""
    while trace is not None:
        code = trace.tb_frame.f_code
        name = "/".join(code.co_filename.split("/")[-3:])
        location = f"{name}:{trace.tb_lineno} {code.co_name}"
        trace = trace.tb_next
    return f"{type(error).__name__}: {str(error)[:300]} [{location}]"


Function = Callable[[Mapping[str, Any]], list[Any]]


def _next(results: Iterator[list[Any]], _: Mapping[str, Any]) -> list[Any]:
    return next(results)


def _eager(module: Any, runs: list[Run], name: str) -> Iterator[Finding]:
    for run in runs:
        yield from _compared(f"eager {name}", run, lambda f: called(module, f))


def _compared(
    name: str,
    run: Run,
    function: Function,
    factor: float = 1,
    skipped: Sequence[bool] = (),
) -> Iterator[Finding]:
    """Findings where ``function`` differs; ``factor`` above 1 is lower precision.

    Outputs that are ``skipped`` are not compared in lower precision.
    """
    try:
        got = function(run.feeds)
    except CRASHES as error:
        yield Finding("crashed", name, described(error), run.label)
        return
    if factor > 1 and len(got) == len(run.expected):
        got = [
            z if s else y for y, z, s in zip(got, run.expected, skipped, strict=True)
        ]
    text = difference_beyond_noise(got, run, factor)
    if text is not None:
        yield Finding("different", name, text, run.label)


def difference_beyond_noise(got: list[Any], run: Run, factor: float = 1) -> str | None:
    """Return the difference beyond noise, and beyond rounding inside of the graph.

    Elements that rounding changes are compared with what it may make of each.
    """
    noise = [factor * n for n in run.noise]
    text = _beyond(got, run, noise, factor)
    if text is None:
        return None
    inside = run.rounding(STEPS[factor])
    noise = [max(pair) for pair in zip(noise, inside, strict=True)]
    text = _beyond(got, run, noise, factor)
    if text is None or factor > 1:
        return text
    return _beyond(within_spreads(got, run.expected, run.spreads()), run, noise, factor)


def _beyond(got: list[Any], run: Run, noise: list[float], factor: float) -> str | None:
    if factor > 1 and len(got) == len(run.expected):
        got, noise = _coarse(got, run.expected, noise, factor)
    return difference(got, run.expected, noise)


def _coarse(
    got: list[Any], expected: list[Any], noise: list[float], factor: float
) -> tuple[list[Any], list[float]]:
    """Return results and noise in lower precision, which is ignored where large."""
    results, bounds = [], []
    for y, z, slack in zip(got, expected, noise, strict=True):
        plain = isinstance(z, list) or z.dtype.kind != "f" or is_not_finite(z)
        scale = 0.0 if plain or not z.size else float(abs(z).max())
        bound = slack + factor * 1e-5 * scale
        results.append(z if plain or bound > 0.3 * scale else y)
        bounds.append(0.0 if plain else bound)
    return results, bounds


def _compiled(
    module: Any, runs: list[Run], thorough: bool, skipped: Sequence[bool]
) -> Iterator[Finding]:
    order = [runs[0], runs[0], runs[1], *runs[2:], runs[1], runs[0]]
    ways: dict[str, tuple[dict[str, Any], float]] = {"compiled": ({}, 1)}
    if thorough:
        ways["generated"] = ({"generated": True}, 1)
        ways["bf16"] = ({"precision": "bf16"}, BF16)
        ways["int8"] = ({"precision": "int8"}, INT8)
    for name, (options, factor) in ways.items():
        results = compiled_calls(module, [run.feeds for run in order], **options)
        for run in order:
            step = partial(_next, results)
            matches = list(_compared(name, run, step, factor, skipped))
            yield from matches
            if any(f.kind == "crashed" for f in matches):
                break


def _compiled_not_finite(module: Any, runs: list[Run]) -> Iterator[Finding]:
    """Plans beside the eager module: recorded with NaN, and given it in later calls."""
    special = [run for run in runs if run.label == NOT_FINITE]
    order = [*special, runs[0], *special, *special] if special else []
    results = compiled_calls(module, [run.feeds for run in order])
    for run in order:
        try:
            eager = replace(run, expected=called(module, run.feeds))
        except CRASHES:
            return
        yield from _compared("compiled with NaN", eager, partial(_next, results))
