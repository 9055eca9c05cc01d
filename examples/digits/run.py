"""Imports the digits classifier and compares its accuracy with that of its training.

Run it as ``python examples/digits/run.py``; it writes ``generated/`` beside itself.
"""

import json
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

import burn
from burn_import import ModelGen

HERE = Path(__file__).parent
MODEL = HERE.parents[1] / "models" / "digits" / "digits.onnx"
OUT = HERE / "generated"
BATCH = 64

Images = NDArray[np.float32]
Labels = NDArray[np.int64]
Model = Callable[[burn.Tensor], burn.Tensor]


def generate() -> ModuleType:
    """Return the module generated from the ONNX file, imported."""
    ModelGen().input(str(MODEL)).out_dir(str(OUT)).run_from_script()
    sys.path.insert(0, str(OUT))
    return import_module(MODEL.stem)


def load_set(name: str) -> tuple[Images, Labels]:
    """Return images float32[N, 1, 8, 8] and labels int64[N]."""
    with np.load(MODEL.with_name(f"digits_{name}.npz")) as data:
        return data["images"], data["labels"]


def quantized(model: Model) -> Model:
    """Return the model with integers of 8 bits, by images that it was trained with."""
    images, _ = load_set("train")
    examples = [burn.tensor(images[at : at + BATCH]) for at in range(0, 512, BATCH)]
    return burn.compile(model, precision="int8", calibration=examples)


def burn_correct(model: Model, images: Images, labels: Labels) -> int:
    """Return how many images the model names correctly."""
    correct = 0
    for start in range(0, len(images), BATCH):
        logits = model(burn.tensor(images[start : start + BATCH])).numpy()
        correct += int((logits.argmax(1) == labels[start : start + BATCH]).sum())
    return correct


def onnxruntime_correct(images: Images, labels: Labels) -> int:
    """Return the same number for onnxruntime on the ONNX file itself."""
    import onnxruntime

    session = onnxruntime.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
    (logits,) = session.run(None, {"image": images})
    return int((np.asarray(logits).argmax(1) == labels).sum())


def main() -> None:
    """Return nothing; prints one row for each that has named the test images."""
    metrics = json.loads(MODEL.with_name("metrics.json").read_text("utf-8"))
    module = generate()
    model = module.Digits.load()
    images, labels = load_set("test")
    rows = {
        "PyTorch, when it was trained": metrics["correct"],
        "burn, on the generated module": burn_correct(model, images, labels),
        "burn, with integers of 8 bits": burn_correct(quantized(model), images, labels),
    }
    if find_spec("onnxruntime"):
        rows["onnxruntime, on the ONNX file"] = onnxruntime_correct(images, labels)
    source = Path(str(module.__file__)).relative_to(HERE.parents[1])
    print(f"{MODEL.name} is now {source}. Test images named correctly:")
    for name, correct in rows.items():
        print(f"  {name:<30} {correct} of {len(labels)}  {correct / len(labels):.1%}")


if __name__ == "__main__":
    main()
