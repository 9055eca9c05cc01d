"""Exports of a case to each file format, and the runtimes that run these files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.wild.compare import Array, to_array
from tests.wild.entry import Case, Task, stable_hash

#: The opsets that each ONNX exporter is asked for, one for each architecture.
DYNAMO_OPSETS = (18, 19, 20, 21, 22, 23)
TORCHSCRIPT_OPSETS = (11, 12, 13, 14, 15, 16, 17, 18, 19, 20)
SUFFIXES = {"pt2": ".pt2", "torchscript": ".pt"}


@dataclass(frozen=True)
class Exported:
    """A written file, and a function that runs it with its own runtime.

    ``opset`` is 0 for files of PyTorch. ``dynamic`` says whether the export with
    dynamic axes succeeded; otherwise extents are those of the example. ``module`` is
    the program of a file of PyTorch, which can be differentiated.
    """

    path: Path
    opset: int
    dynamic: bool
    run: Callable[[Sequence[Any]], list[Array]]
    input_positions: tuple[int, ...]
    module: Any = None


def export_case(case: Case, task: Task, folder: Path) -> Exported:
    """Write ``case`` in the format of ``task`` into ``folder``.

    Raises whatever the exporter raises for the export with fixed extents.
    """
    path = folder / f"model{SUFFIXES.get(task.format, '.onnx')}"
    if task.format == "torchscript":
        return _trace(case, path)
    if task.format == "onnx-torchscript":
        return _torchscript_onnx(case, path, task.entry.key)
    program, dynamic = _export_program(case)
    if task.format == "pt2":
        torch.export.save(program, path)
        run, inputs = _run_program(program), _all_inputs(case)
        return Exported(path, 0, dynamic, run, inputs, program.module())
    return _dynamo_onnx(case, program, dynamic, path, task.entry.key)


def _all_inputs(case: Case) -> tuple[int, ...]:
    return tuple(range(len(case.inputs)))


def _export_program(case: Case) -> tuple[Any, bool]:
    """Return the program of ``torch.export``, and whether it has dynamic axes."""
    axes = case.dynamic_axes()
    auto = torch.export.Dim.AUTO
    shapes = tuple(dict.fromkeys(numbers, auto) for numbers in axes)
    if any(shapes):
        with _Fallback() as attempt:
            attempt.result = torch.export.export(
                case.module, case.inputs, dynamic_shapes=shapes, strict=False
            )
        if attempt.result is not None:
            return attempt.result, True
    return torch.export.export(case.module, case.inputs, strict=False), False


class _Fallback:
    """A context that swallows failures of an exporter; ``result`` stays None then."""

    result: Any = None

    def __enter__(self) -> _Fallback:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, Exception)


def _run_program(program: Any) -> Callable[[Sequence[Any]], list[Array]]:
    def run(inputs: Sequence[Any]) -> list[Array]:
        with torch.no_grad():
            return output_arrays(program.module()(*inputs))

    return run


def _trace(case: Case, path: Path) -> Exported:
    jit: Any = torch.jit
    with torch.no_grad():
        traced = jit.trace(case.module, case.inputs, check_trace=False, strict=False)
    jit.save(traced, path)
    loaded = jit.load(path)

    def run(inputs: Sequence[Any]) -> list[Array]:
        with torch.no_grad():
            return output_arrays(loaded(*inputs))

    return Exported(path, 0, True, run, _all_inputs(case), loaded)


def output_arrays(result: Any) -> list[Array]:
    """Return the tensors of a result as arrays; a single tensor is a list of one."""
    return [to_array(tensor) for tensor in output_tensors(result)]


def output_tensors(result: Any) -> list[torch.Tensor]:
    """Return the tensors of a result, which can be nested, in its order.

    Those of a dict come in the order of its keys.
    """
    if isinstance(result, torch.Tensor):
        return [result]
    parts = result.values() if isinstance(result, dict) else result
    if not isinstance(result, dict | tuple | list):
        return []
    return [tensor for part in parts for tensor in output_tensors(part)]


def _dynamo_onnx(
    case: Case, program: Any, dynamic: bool, path: Path, key: str
) -> Exported:
    opset = DYNAMO_OPSETS[stable_hash(key) % len(DYNAMO_OPSETS)]
    torch.onnx.export(
        program,
        f=path,
        opset_version=opset,
        dynamo=True,
        external_data=False,
        verbose=False,
    )
    return _onnx_file(case, path, dynamic)


def _torchscript_onnx(case: Case, path: Path, key: str) -> Exported:
    """Write the file with the first opset from the chosen one up that is accepted."""
    first = stable_hash(key) % len(TORCHSCRIPT_OPSETS)
    opsets = TORCHSCRIPT_OPSETS[first:]
    for opset in opsets:
        try:
            _export_script(case, path, opset)
        except torch.onnx.errors.UnsupportedOperatorError:
            if opset == opsets[-1]:
                raise
            continue
        break
    return _onnx_file(case, path, case.larger is not None)


def _export_script(case: Case, path: Path, opset: int) -> None:
    """Export with the default options, or without folding, as for fine-tuning."""
    names = [f"x{k}" for k in range(len(case.inputs))]
    axes = {
        name: {axis: f"{name}_{axis}" for axis in numbers}
        for name, numbers in zip(names, case.dynamic_axes(), strict=True)
        if numbers
    }
    options: dict[str, Any] = {}
    if opset % 2:
        options = {
            "training": torch.onnx.TrainingMode.PRESERVE,
            "do_constant_folding": False,
        }
    torch.onnx.export(
        case.module,
        case.inputs,
        path,
        input_names=names,
        dynamic_axes=axes,
        opset_version=opset,
        dynamo=False,
        **options,
    )


def _onnx_file(case: Case, path: Path, dynamic: bool) -> Exported:
    """Return the written file with the inputs that it kept, in the file's order."""
    import onnx

    model = onnx.load(path, load_external_data=False)
    opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    names = [value.name for value in model.graph.input]
    positions = _input_positions(names, case)

    def run(inputs: Sequence[Any]) -> list[Array]:
        feeds = {
            name: to_array(inputs[position])
            for name, position in zip(names, positions, strict=True)
        }
        return run_onnxruntime(path, feeds)

    return Exported(path, opset, dynamic, run, positions)


def _input_positions(names: Sequence[str], case: Case) -> tuple[int, ...]:
    """Return which input of the case each input of the file is."""
    if len(names) == len(case.inputs):
        return tuple(range(len(names)))
    import inspect

    parameters = list(inspect.signature(case.module.forward).parameters)
    seen = {name: k for k, name in enumerate(parameters)}
    seen |= {f"x{k}": k for k in range(len(case.inputs))}
    return tuple(seen[name] for name in names)


def unexplained_arrays(path: Path, module: Any) -> list[str]:
    """Return the floating initializers that have no tensor's elements in any order.

    The exporter computed these, from parameters or from constants.
    """
    import onnx

    tensors = (*module.parameters(), *module.buffers())
    stored = [np.sort(to_array(tensor.detach()), None) for tensor in tensors]
    names = []
    for initializer in onnx.load(path).graph.initializer:
        values = np.sort(onnx.numpy_helper.to_array(initializer), None)
        is_copy = any(np.array_equal(values, own) for own in stored)
        if values.dtype.kind == "f" and values.size > 1 and not is_copy:
            names.append(initializer.name)
    return names


def run_onnxruntime(path: Path, feeds: dict[str, Array]) -> list[Array]:
    """Return onnxruntime's results on one thread, without graph optimizations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.graph_optimization_level = level
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        path, options, providers=["CPUExecutionProvider"]
    )
    return [np.asarray(value) for value in session.run(None, feeds)]


@contextmanager
def seeded() -> Iterator[None]:
    """Draw the same random numbers in every process."""
    torch.manual_seed(0)
    np.random.seed(0)
    yield


def randomize(module: Any) -> None:
    """Change parameters and running statistics a little, so that none is 0 or 1.

    Layers that start with zeros would hide whatever is wrong behind them.
    """
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.is_floating_point():
                noise = torch.randn(parameter.shape, generator=generator)
                parameter.add_(noise.to(parameter.dtype), alpha=0.02)
        for name, buffer in module.named_buffers():
            if name.endswith("running_mean"):
                buffer.add_(torch.randn(buffer.shape, generator=generator), alpha=0.1)
            elif name.endswith("running_var"):
                buffer.mul_(torch.rand(buffer.shape, generator=generator) * 0.5 + 0.75)
