"""Generated modules of exported files: written, loaded, called, differentiated."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import burn
from burn.dtypes import is_float
from burn.nn import BatchNorm1d, BatchNorm2d, BatchNorm3d
from tests.modules import import_file
from tests.wild.compare import Array
from tests.wild.torch_results import STEP, output_weights


@dataclass(frozen=True)
class Generated:
    """The class of a generated module, whose record lies beside its source.

    ``backend`` is where it is loaded, called and differentiated.
    """

    kind: Any
    backend: Any = field(default_factory=burn.Cpu)

    def load(self, backend: Any = None) -> Any:
        """Return an instance with the weights of the record, on ``self.backend``."""
        return self.kind.load(backend=backend or self.backend)

    def call(self, model: Any, arrays: Sequence[Array]) -> list[Array]:
        """Return the results of ``model`` for ``arrays`` as arrays."""
        return [tensor.numpy() for tensor in self._outputs(model, arrays)]

    def _outputs(self, model: Any, arrays: Sequence[Array]) -> list[Any]:
        parameters = inspect.signature(self.kind.__call__).parameters
        expected = len(parameters) - 1
        if expected != len(arrays):
            raise TypeError(f"expected {len(arrays)} parameters, got {expected}")
        result = model(*(burn.tensor(array, self.backend) for array in arrays))
        return list(result) if isinstance(result, tuple) else [result]

    def gradients(self, arrays: Sequence[Array]) -> dict[str, Array]:
        """Return the gradients of the scalar of ``torch_results.gradients`` by key."""
        model = self.load(burn.Autodiff(self.backend))
        keep_statistics(model)
        gradients = self.scalar(model, arrays).backward()
        boxes = [(k, b) for k, b in model.boxes() if isinstance(b, burn.Parameter)]
        return {k: gradients[b].numpy() for k, b in boxes if b in gradients}

    def slope(self, arrays: Sequence[Array], direction: Mapping[str, Array]) -> float:
        """Return the derivative of that scalar along a direction of parameters.

        It is a central difference, for modules that compute in float64.
        """
        model = self.load()
        width = STEP / max(float(np.abs(step).max()) for step in direction.values())
        boxes = {k: box for k, box in model.boxes() if k in direction}
        values = {key: box.value.numpy().copy() for key, box in boxes.items()}
        totals = []
        for factor in (width, -width):
            for key, box in boxes.items():
                box.set(burn.tensor(values[key] + factor * direction[key]))
            totals.append(float(self.scalar(model, arrays).numpy()))
        return (totals[0] - totals[1]) / (2 * width)

    def scalar(self, model: Any, arrays: Sequence[Array]) -> Any:
        terms = []
        for position, tensor in enumerate(self._outputs(model, arrays)):
            if is_float(tensor.dtype):
                weights = output_weights(position, tensor.shape)
                factors = burn.tensor(weights.astype(tensor.dtype), self.backend)
                terms.append((tensor * factors).sum())
        return sum(terms[1:], terms[0])


def keep_statistics(model: Any) -> None:
    """Let batch normalization use its running statistics on ``Autodiff``, too.

    There it would use those of the batch, as PyTorch's does after ``train()``; the
    exported models are in evaluation mode.
    """
    for _, module in model.modules():
        if isinstance(module, BatchNorm1d | BatchNorm2d | BatchNorm3d):
            layer: Any = module
            layer._train = partial(_normalize, layer)


def _normalize(module: Any, x: burn.Tensor) -> burn.Tensor:
    statistics = module.running_mean.value, module.running_var.value
    return burn.ops.batch_norm(
        x, *statistics, module.weight, module.bias, epsilon=module.eps
    )


def import_exported(path: Path, folder: Path, dtype: str | None = None) -> Generated:
    """Write the module for the file at ``path``, as the command line does.

    ``dtype`` is what the module computes in instead of the file's floating dtypes.

    Raises:
        burn_ir.ModelError: the file cannot be imported.
    """
    from burn_import.options import Options
    from burn_import.pipeline import import_model, write_model

    stem = f"generated_{dtype}" if dtype else "generated"
    options = Options(class_name="Model", stem=stem, dtype=dtype)
    compiled = import_model(path, options)
    written = write_model(compiled, folder / f"{stem}.py")
    return Generated(getattr(import_file(written.module), compiled.class_name))
