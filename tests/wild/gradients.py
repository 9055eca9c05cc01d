"""Gradients of all parameters in three formats, compared with PyTorch's in float64."""

from __future__ import annotations

import fnmatch
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from tests.wild import torch_results
from tests.wild.catalogue import missing_packages, read_catalogue
from tests.wild.compare import Array, as_double, compare_gradients, is_right
from tests.wild.entry import Task, ordered_tasks
from tests.wild.examine import Examination
from tests.wild.generated import import_exported

EXAMINATION = f"{__name__}:GradientExamination"
FORMATS = ("onnx-torchscript", "onnx-dynamo", "pt2")
#: Architectures of each kind of layer that all three exporters write.
MODELS: dict[str, tuple[str, ...]] = {
    "research": (
        *("gcn", "gat", "graph_transformer", "mamba", "moe_dense", "nbeats", "rwkv"),
        *("tcn", "wavenet", "xlstm", "retention", "alibi", "dilated_gru"),
        *("peephole_lstm", "mixer", "capsules", "detr", "pointnet", "vae"),
        *("super_resolution", "spatial_transformer", "realnvp", "kan", "deepfm"),
        *("ft_transformer", "set_transformer", "center_detector", "conformer"),
        *("se_resnext", "shifted_windows"),
    ),
    "transformers": (
        *("albert", "bert", "bloom", "clip", "convnext", "deberta", "distilbert"),
        *("electra", "gpt2", "gpt_neox", "llama", "mistral", "mobilebert", "opt"),
        *("resnet", "roberta", "segformer", "swin", "t5", "vit", "whisper"),
    ),
}


def gradient_tasks(
    patterns: Sequence[str], formats: Sequence[str] = FORMATS
) -> list[Task]:
    """Return a task for each format of the models that match one of the patterns."""
    libraries = [name for name in MODELS if not missing_packages(name)]
    entries = [
        entry
        for entry in read_catalogue(libraries)
        if entry.name in MODELS[entry.library]
        and any(fnmatch.fnmatch(entry.key, pattern) for pattern in patterns)
    ]
    return ordered_tasks(entries, formats)


def rename_shared(
    gradients: Mapping[str, Array], module: Any, keys: Collection[str]
) -> dict[str, Array]:
    """Return gradients by the names in ``keys`` where a parameter has several names."""
    names: dict[int, list[str]] = defaultdict(list)
    for name, parameter in module.named_parameters(remove_duplicate=False):
        names[id(parameter)].append(name)
    chosen = {
        shared[0]: next((name for name in shared if name in keys), shared[0])
        for shared in names.values()
    }
    return {chosen.get(key, key): array for key, array in gradients.items()}


def separated_keys(model: Any, other: Any) -> list[str]:
    """Return the keys whose array ``model`` shares with an earlier key, and not other.

    A module of float64 has no layers, and stores a tied matrix of a product apart.
    """
    first: dict[int, str] = {}
    boxes = dict(other.boxes())
    separated = []
    for key, box in model.boxes():
        earlier = first.setdefault(id(box), key)
        if key in boxes and boxes[key] is not boxes.get(earlier, boxes[key]):
            separated.append(key)
    return separated


class GradientExamination(Examination):
    """An examination that compares gradients in float32 and in float64.

    The reference of both are PyTorch's in float64.
    """

    def stages(self) -> dict[str, Callable[[], None]]:
        """Return the stages that gradients need."""
        names = ("build", "torch", "export", "reference", "import", "load", "gradients")
        stages = super().stages()
        return {name: stages[name] for name in names}

    def _is_final(self, stage: str, error: BaseException) -> bool:
        is_final = super()._is_final(stage, error)
        if stage == "gradients":
            self.row.outcome = "internal error"
        return is_final

    def compare_gradients(self) -> None:
        """Fill in the errors of the gradients, and why they differ if they do."""
        row, case, changed = self.row, self.case, self.row.changed_keys
        keys = {key for key, _ in self.model.boxes()}
        own = torch_results.gradients(case.module, case.inputs)
        own = rename_shared(own, case.module, keys)
        expected = rename_shared(torch_results.gradients64(case), case.module, keys)
        inputs = self._inputs(case.inputs)
        actual = self.generated.gradients(inputs)
        result = compare_gradients(actual, expected, changed)
        row.gradient_error, row.gradient_count = result.error, result.compared
        row.missing_keys = list(result.missing)
        row.gradient_rounding = compare_gradients(own, expected, changed).error
        double = import_exported(self.exported.path, self.folder, "float64")
        actual64 = double.gradients([as_double(array) for array in inputs])
        result64 = compare_gradients(actual64, expected, changed)
        row.gradient64_error = result64.error
        apart = separated_keys(self.model, double.load())
        if result.compared == 0:
            row.gradient = "none"
        elif is_right(result.error) and is_right(result64.error):
            row.gradient = "right"
        elif is_right(result.error) and apart:
            row.gradient = (
                f"right in float32; --dtype float64 does not share {apart[0]}"
            )
        else:
            row.gradient = self._explain(own, actual, result)
