"""The examination of one file: export, import, run, and compare the results."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

import burn
from tests.wild import torch_results
from tests.wild.compare import (
    Array,
    GradientErrors,
    MismatchError,
    as_double,
    compare_gradients,
    is_finite,
    is_right,
    largest_error,
    to_array,
)
from tests.wild.entry import Case, Task
from tests.wild.errors import describe_error, is_refused, root_cause
from tests.wild.exporters import (
    Exported,
    export_case,
    randomize,
    unexplained_arrays,
)
from tests.wild.generated import Generated, import_exported
from tests.wild.results import Row
from tests.wild.verdict import explain_difference, follows

#: What a failure in each stage means. Stages that are not listed are not fatal.
FATAL = {
    "build": "model failed",
    "torch": "model failed",
    "export": "exporter failed",
    "import": "internal error",
    "load": "internal error",
    "eager": "internal error",
    "compiled": "internal error",
    "second size": "internal error",
}
#: How far the runtime of a file may be from PyTorch on a model exported faithfully.
LARGEST_DIFFERENCE = 1e-2


class WrongResultError(ValueError):
    """A result differs from the reference."""


class Stage:
    """A context manager that times one stage, and stores an error in it.

    ``error`` is the exception, or None. Interrupts and exits are not kept.
    """

    def __init__(self, row: Row, name: str, announce: Callable[[str], None]):
        self.row, self.name = row, name
        self.error: BaseException | None = None
        announce(name)

    def __enter__(self) -> Stage:
        self.row.stage = self.name
        self.start = time.perf_counter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        seconds = time.perf_counter() - self.start
        self.row.seconds[self.name] = round(seconds, 3)
        self.error = error
        return error is None or isinstance(error, Exception)


class Examination:
    """The stages of one task, which fill in ``row``.

    ``folder`` is empty and receives the exported and generated files. ``announce`` is
    called with the name of each stage before it begins.
    """

    case: Case
    exported: Exported
    generated: Generated
    expected: list[Array]
    references: list[Array]
    model: Any
    #: Whether onnxruntime says that the file is wrong.
    is_invalid = False

    def __init__(self, task: Task, folder: Path, announce: Callable[[str], None]):
        entry = task.entry
        self.task, self.folder, self.announce = task, folder, announce
        names = (entry.library, entry.family, entry.name, task.format)
        self.row = Row(task.key, *names)

    def stages(self) -> dict[str, Callable[[], None]]:
        """Return the stages by name, in their order."""
        return {
            "build": self.build,
            "torch": self.run_torch,
            "export": self.export,
            "reference": self.run_reference,
            "import": self.import_model,
            "load": self.load,
            "eager": self.call_eager,
            "compiled": self.call_compiled,
            "second size": self.call_second,
            "gradients": self.compare_gradients,
        }

    def run(self) -> Row:
        """Return the row after all stages, or after the first that fails fatally."""
        for name, action in self.stages().items():
            with Stage(self.row, name, self.announce) as stage:
                action()
            if stage.error is not None and self._is_final(name, stage.error):
                return self.row
        self.row.outcome = self.row.outcome or "right"
        return self.row

    def _is_final(self, stage: str, error: BaseException) -> bool:
        """Note a failure, and return whether no other stage can follow."""
        text = describe_error(root_cause(error) if stage == "export" else error)
        if stage == "reference":
            self.is_invalid = is_refused(error)
            self.row.reference, self.row.cause = "torch", f"runtime failed: {text}"
            self.references = self.expected
        elif stage == "gradients":
            self.row.gradient = f"error: {text}"
        else:
            self.row.outcome = self._outcome(stage, error)
            self.row.cause = text
        return stage in FATAL

    def _outcome(self, stage: str, error: BaseException) -> str:
        from burn_ir import ModelError

        if isinstance(error, WrongResultError | MismatchError):
            return "wrong"
        if stage == "import" and isinstance(error, ModelError):
            return "invalid file" if self.is_invalid else "refused"
        if stage == "eager" and isinstance(error, ValueError) and self.is_invalid:
            return "invalid file"
        if stage == "build" and isinstance(error, ImportError):
            return "library missing"
        return FATAL[stage]

    def build(self) -> None:
        """Build the model with random weights, the same ones in every process."""
        torch.manual_seed(0)
        case = self.task.entry.build()
        randomize(case.module.eval())
        self.case = case

    def run_torch(self) -> None:
        """Run the model twice; one that draws random numbers is not compared."""
        self.expected = torch_results.run(self.case.module, self.case.inputs)
        again = torch_results.run(self.case.module, self.case.inputs, seed=1)
        if not self.expected:
            raise ValueError("the model returns no tensor")
        try:
            error = largest_error(again, self.expected)
        except MismatchError:
            error = float("inf")
        if error > 0:
            raise ValueError("the model draws random numbers: two calls differ")

    def export(self) -> None:
        """Write the file."""
        self.exported = export_case(self.case, self.task, self.folder)
        self.row.opset, self.row.dynamic = self.exported.opset, self.exported.dynamic

    def run_reference(self) -> None:
        """Run the file with its own runtime."""
        self.references = self.exported.run(self.case.inputs)
        is_onnx = self.task.format.startswith("onnx")
        self.row.reference = "onnxruntime" if is_onnx else "exported program"
        try:
            error = largest_error(self.references, self.expected)
        except MismatchError:
            error = float("inf")
        self.row.reference_error = error

    def import_model(self) -> None:
        """Generate the source and the record, as the command line does."""
        self.generated = import_exported(self.exported.path, self.folder)

    def load(self) -> None:
        """Instantiate the module with its record; compare its keys with PyTorch's."""
        self.model = self.generated.load()
        keys = torch_results.compare_keys(self.case.module, self.model)
        self.row.key_count = keys.count
        self.row.missing_keys = keys.missing
        self.row.extra_keys = keys.extra
        self.row.changed_keys = keys.changed

    def call_eager(self) -> None:
        """Compare an eager call with the reference."""
        try:
            self.row.error = self._eager_error()
        except (WrongResultError, MismatchError):
            if (self.row.rounding or 0.0) <= LARGEST_DIFFERENCE:
                raise
            self._use_double()
            self.row.error = self._eager_error()

    def _eager_error(self) -> float:
        results = self.generated.call(self.model, self._inputs(self.case.inputs))
        return self._checked(results, self.references, "eager call")

    def _use_double(self) -> None:
        """Go on in float64: PyTorch's own float32 result is arbitrary.

        Detectors with random weights have scores that differ by less than rounding, and
        sort their boxes by them.
        """
        self.case = case = torch_results.double_case(self.case)
        run = partial(torch_results.run, case.module)
        self.exported = replace(self.exported, run=run)
        self.expected = self.references = run(case.inputs)
        path = self.exported.path
        self.generated = import_exported(path, self.folder, "float64")
        self.model = self.generated.load()
        self.row.reference, self.row.rounding = "PyTorch in float64", 0.0

    def call_compiled(self) -> None:
        """Compare three calls of the compiled module with the reference."""
        compiled = burn.compile(self.model)
        self.row.compiled_error = 0.0
        for number in (1, 2, 3):
            results = self.generated.call(compiled, self._inputs(self.case.inputs))
            what = f"compiled call {number}"
            error = self._checked(results, self.references, what)
            self.row.compiled_error = max(self.row.compiled_error, error)

    def call_second(self) -> None:
        """Compare with the reference at the second size, where the file allows it."""
        larger = self.case.larger
        if larger is None or not self.exported.dynamic:
            return
        with Stage(self.row, "second reference", self.announce) as stage:
            references = self.exported.run(larger)
            expected = torch_results.run(self.case.module, larger)
            difference = largest_error(references, expected)
            is_general = difference < LARGEST_DIFFERENCE
        self.row.stage = "second size"
        if stage.error is not None or not is_general:
            self.row.dynamic = False
            return
        results = self.generated.call(self.model, self._inputs(larger))
        error = self._checked(results, references, "eager call, second size")
        compiled = burn.compile(self.model)
        for inputs, reference, what in (
            (self.case.inputs, self.references, "compiled call before it"),
            (larger, references, "compiled call, second size"),
            (larger, references, "compiled call, second size, again"),
            (self.case.inputs, self.references, "compiled call after second size"),
        ):
            results = self.generated.call(compiled, self._inputs(inputs))
            error = max(error, self._checked(results, reference, what))
        self.row.second_error = error

    def _inputs(self, tensors: Sequence[Any]) -> list[Array]:
        return [to_array(tensors[k]) for k in self.exported.input_positions]

    def _checked(
        self, results: list[Array], references: list[Array], what: str
    ) -> float:
        """Return the error of results.

        Raises:
            WrongResultError: it is larger than rounding explains.
        """
        try:
            error = largest_error(results, references)
        except MismatchError as mismatch:
            raise MismatchError(f"{what}: {mismatch}") from mismatch
        if is_right(error):
            return error
        if self.row.rounding is None:
            self.row.rounding = torch_results.rounding_error(self.case, self.expected)
        noise = max(self.row.rounding, self.row.reference_error or 0.0)
        if is_right(error, min(noise, LARGEST_DIFFERENCE)):
            return error
        if references is self.references and self._agrees_with_torch(results):
            self.row.reference = "torch"
            return error
        raise WrongResultError(
            f"{what}: error {error:.2g}, PyTorch's rounding {noise:.2g}"
        )

    def _agrees_with_torch(self, results: list[Array]) -> bool:
        """Return whether the runtime, and not the module, differs from PyTorch."""
        try:
            return is_right(largest_error(results, self.expected))
        except MismatchError:
            return False

    def compare_gradients(self) -> None:
        """Compare the gradients of all parameters by key with PyTorch's."""
        if (self.row.reference_error or 0.0) > LARGEST_DIFFERENCE:
            self.row.gradient = "none"  # the exporter changed what is computed
            return
        if not all(is_finite(array) for array in self.expected):
            self.row.gradient = "none"  # those of NaN mean nothing
            return
        expected = torch_results.gradients(self.case.module, self.case.inputs)
        if expected.keys().isdisjoint(key for key, _ in self.model.parameters()):
            self.row.gradient = "none"  # the model, or the file, has no such parameter
            return
        actual = self.generated.gradients(self._inputs(self.case.inputs))
        changed = self.row.changed_keys
        result = compare_gradients(actual, expected, changed)
        self.row.gradient_error = result.error
        self.row.gradient_count = result.compared
        self.row.missing_keys = list(result.missing)
        if result.compared == 0:
            self.row.gradient = "none"
        elif is_right(result.error):
            self.row.gradient = "right"
        else:
            self.row.gradient = self._explain(expected, actual, result)

    def _is_changed(self) -> bool:
        """Return whether the file's own runtime gives something else than PyTorch.

        The difference is more than rounding: the exporter left something out.
        """
        if self.row.rounding is None:
            self.row.rounding = torch_results.rounding_error(self.case, self.expected)
        return not is_right(self.row.reference_error or 0.0, self.row.rounding)

    def _explain(
        self,
        expected: dict[str, Array],
        actual: dict[str, Array],
        result: GradientErrors,
    ) -> str:
        """Return a note on gradients that differ from PyTorch's.

        ONNX has no parameters that are folded, and nothing that stops gradients: there
        the exporter changes them.
        """
        case, changed = self.case, self.row.changed_keys
        derived = torch_results.derived_keys(
            case.module, self.model, self.row.extra_keys
        )
        self.model = None  # its memory is needed
        double = import_exported(self.exported.path, self.folder, "float64")
        inputs = [as_double(array) for array in self._inputs(case.inputs)]
        found64 = double.gradients(inputs)
        slope = partial(double.slope, inputs)
        reason = explain_difference(case, expected, actual, found64, changed, slope)
        if reason == "rounding":
            return "right"
        if self.task.format.startswith("onnx"):
            if derived:
                key = derived[0]
                return f"folded: {result.worst}, part of its gradient is that of {key}"
            if reason == "detached":
                return f"detached: {result.worst}, PyTorch's is not the derivative"
            computed = unexplained_arrays(self.exported.path, case.module)
            if computed and follows(found64, slope):
                return f"folded: {result.worst}, by {computed[0]} of the file"
            if self._is_changed():
                difference = f"{self.row.reference_error:.2g}"
                return f"changed: the file's own result differs by {difference}"
        elif self._follows_file(actual):
            return f"detached: {result.worst}, the file has no such stop of gradients"
        return f"wrong: {result.worst}"

    def _follows_file(self, actual: dict[str, Array]) -> bool:
        """Return whether gradients are those of the file's program in PyTorch.

        A trace does not know what was computed without gradients.
        """
        if self.exported.module is None:
            return False
        own = torch_results.gradients(self.exported.module, self.case.inputs)
        result = compare_gradients(actual, own, self.row.changed_keys)
        return result.compared > 0 and is_right(result.error)
