"""Unsupported files and folders, and what the user can do with them instead."""

from difflib import get_close_matches
from pathlib import Path

EXPORT = "Export the model to ONNX with torch.onnx.export and import that."
REMEDY = f"{EXPORT} The weights alone become a record with -o NAME.safetensors."
AGAIN = "Compare its size with the original; copy, download or export it again."
SHARDED = (
    "expected a file, got a checkpoint in shards (torch.distributed.checkpoint). Make "
    "it one file with python -m torch.distributed.checkpoint.format_utils dcp_to_torch "
    "FOLDER NAME.pt"
)
_SAVED_MODEL = "python -m tf2onnx.convert --saved-model FOLDER --output NAME.onnx"
#: Typical files of known folder kinds, and advice for each kind.
_FOLDERS = (
    ("saved_model.pb", f"Convert this SavedModel of TensorFlow with {_SAVED_MODEL}"),
    ("Manifest.json", "Export the model that Core ML was converted from to ONNX."),
    ("model.safetensors.index.json", "Pass model.safetensors.index.json in it."),
    ("model.safetensors", "Pass model.safetensors in it."),
)


def folder_remedy(folder: Path) -> str:
    """Return what to do with a folder that was passed as a model."""
    remedies = (text for name, text in _FOLDERS if (folder / name).is_file())
    return next(remedies, "Pass the model file in it.")


def missing_remedy(path: Path) -> str:
    """Return a hint with files whose names resemble the missing one."""
    if path.parts[:1] in (("https:",), ("http:",)):
        return "Models are read from files: download it first."
    if not path.parent.is_dir():
        return f"There is no folder {str(path.parent)!r}."
    names = [file.name for file in path.parent.iterdir() if file.is_file()]
    near = [repr(name) for name in get_close_matches(path.name, names, 3, 0.7)]
    return f"Did you mean {' or '.join(near)}?" if near else ""
