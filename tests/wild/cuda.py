"""Files examined on the CPU and then on a CUDA device."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

import burn
from tests.wild import torch_results
from tests.wild.compare import MismatchError, compare_gradients, is_right
from tests.wild.errors import describe_error
from tests.wild.examine import Examination, WrongResultError


class CudaExamination(Examination):
    """An examination that repeats the calls and the gradients on a CUDA device.

    Results are compared with the reference of the calls on the CPU, and gradients with
    those of the CPU. ``row.cuda`` is "right", or says what differs or fails; the
    outcome of the row stays that of the CPU.
    """

    def stages(self) -> dict[str, Callable[[], None]]:
        """Return the stages of the CPU, followed by those of the device."""
        own = {"cuda": self.call_cuda, "cuda gradients": self.compare_cuda_gradients}
        return {**super().stages(), **own}

    def _is_final(self, stage: str, error: BaseException) -> bool:
        if not stage.startswith("cuda"):
            return super()._is_final(stage, error)
        is_wrong = isinstance(error, WrongResultError | MismatchError)
        kind = "wrong" if is_wrong else "error"
        self.row.cuda = f"{kind}: {describe_error(error)}"
        self.row.outcome = self.row.outcome or "right"
        return True

    def call_cuda(self) -> None:
        """Compare an eager and three compiled calls, and those of the second size."""
        if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
            del os.environ["CUDA_VISIBLE_DEVICES"]  # hidden from PyTorch alone
        row = self.row
        own = row.error, row.compiled_error, row.second_error
        self.generated = replace(self.generated, backend=burn.Cuda())
        self.model = self.generated.load()
        try:
            row.error = self._eager_error()
            self.call_compiled()
            self.call_second()
            errors = row.error, row.compiled_error, row.second_error
            row.cuda_error = max(error for error in errors if error is not None)
        finally:
            row.error, row.compiled_error, row.second_error = own
        row.cuda = "right"

    def compare_cuda_gradients(self) -> None:
        """Compare the gradients of all parameters with those of the CPU."""
        if self.row.gradient in ("", "none") or self.row.gradient.startswith("error"):
            return
        self.model = None  # its memory is needed
        inputs = self._inputs(self.case.inputs)
        actual = self.generated.gradients(inputs)
        expected = replace(self.generated, backend=burn.Cpu()).gradients(inputs)
        result = compare_gradients(actual, expected)
        self.row.cuda_gradient_error = result.error
        if is_right(result.error):
            return
        own = torch_results.gradients(self.case.module, self.case.inputs)
        noise = torch_results.gradient_noise(self.case, own)
        if not is_right(result.error, noise):
            text = f"error {result.error:.2g}, PyTorch's rounding {noise:.2g}"
            raise WrongResultError(f"gradient of {result.worst}: {text}")
