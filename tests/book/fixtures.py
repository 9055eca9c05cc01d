"""Files and names that the code of the pages takes for granted."""

import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import burn
from burn import loss, nn, ops
from burn_import.options import Options
from burn_import.pipeline import import_model, write_model
from tests.importer.pytorch_files import tensor, zip_file
from tests.test_house import ROOT

Names = dict[str, Any]
Setup = Callable[[Names], Names]
#: What else a page needs; the names are added to those that all pages have.
PAGES: dict[str, Setup] = {}
#: The function that a page about data applies to items, in a file for its workers.
PREPARATION = """
from burn import data


def prepare(item):
    return data.channels_first(item[0]), item[1]
"""


def page(name: str) -> Callable[[Setup], Setup]:
    """Register the function that prepares a page."""
    return lambda function: PAGES.setdefault(name, function)


def prepare(name: str) -> Names:
    """Write a small classifier into the working folder; return the names of a page.

    ``net.onnx`` is the classifier of digits, ``app/net.py`` the class ``Net`` of it.
    """
    shutil.copytree(ROOT / "models" / "digits", "models/digits")
    shutil.copy("models/digits/digits.onnx", "net.onnx")
    Path("app").mkdir()
    compiled = import_model(Path("net.onnx"), Options(class_name="Net", stem="net"))
    write_model(compiled, Path("app/net.py"))
    with np.load("models/digits/digits_train.npz") as arrays:
        images, labels = arrays["images"][:64], arrays["labels"][:64]
    names: Names = {
        "burn": burn,
        "nn": nn,
        "ops": ops,
        "np": np,
        "Path": Path,
        "__file__": "app/net.py",
        "Tensor": burn.Tensor,
        "images": images,
        "labels": labels,
        "batches": pairs(images, labels),
        "examples": [burn.tensor(images)],
        "image": images[:1],
        "x": burn.tensor(images[:8]),
        "y": burn.tensor(labels[:8]),
    }
    setup = PAGES.get(name)
    return names | (setup(names) if setup else {})


def generated_class() -> Any:
    """Return the class ``Net`` of the generated module."""
    return import_module("app.net").Net


def pairs(images: Any, labels: Any) -> list[tuple[burn.Tensor, burn.Tensor]]:
    """Return four batches of images and labels."""
    return [
        (burn.tensor(images[at : at + 16]), burn.tensor(labels[at : at + 16]))
        for at in range(0, 64, 16)
    ]


@page("docs/records.md")
def write_checkpoint(names: Names) -> Names:
    """Write the weights of a model that was trained on several devices."""
    shapes = {
        "encoder.0.weight": (16, 8),
        "encoder.0.bias": (16,),
        "encoder.2.weight": (16, 16),
        "encoder.2.bias": (16,),
        "norm.weight": (16,),
        "norm.bias": (16,),
        "head.weight": (3, 16),
        "head.bias": (3,),
    }
    rng = np.random.default_rng(0)
    weights = {
        f"module.{key}": tensor(str(n), rng.normal(size=shape).astype(np.float16))
        for n, (key, shape) in enumerate(shapes.items())
    }
    file = zip_file({"epoch": 3, "state_dict": weights})
    Path("checkpoint.pt").write_bytes(file)
    return {}


@page("docs/training.md")
def import_training(names: Names) -> Names:
    """Return the class, the loss and the validation set of the page."""
    return {
        "Net": generated_class(),
        "loss_of": loss.cross_entropy,
        "valid": names["batches"],
    }


@page("docs/data.md")
def write_photos(names: Names) -> Names:
    """Write a folder of small pictures; return a step, and sequences of numbers."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for at in range(20):
        folder = Path("photos") / ("cats", "dogs")[at % 2]
        folder.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 255, (32, 32, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{at}.png")
    Path("preparation.py").write_text(PREPARATION, "utf-8")
    prepare = import_module("preparation").prepare
    samples = [(np.arange(n), np.arange(n) % 5) for n in range(4, 40)]
    values = {"prepare": prepare, "samples": samples, "np": np}
    return {**values, "step": lambda images, labels: None}


@page("docs/verify.md")
def write_two_models(names: Names) -> Names:
    """Write recorded inputs and two models that differ; return the class's instance."""
    np.savez("x.npz", image=names["images"][:2])
    shutil.copy("net.onnx", "old.onnx")
    model = onnx.load("net.onnx")
    model.graph.node[2].op_type = "Tanh"
    onnx.save(model, "new.onnx")
    return {"net": generated_class().load()}


@page("docs/quantize.md")
def write_calibration(names: Names) -> Names:
    """Write arrays for calibration and evaluation."""
    np.savez("batches.npz", image=names["images"])
    np.savez("test.npz", image=names["images"])
    return {}


@page("docs/pytorch.md")
def write_numbered_layers(names: Names) -> Names:
    """Write checkpoints of numbered layers, and a module with changing buffers."""

    def write(path: str, shapes: dict[str, tuple[int, ...]]) -> None:
        weights = {
            key: tensor(str(n), np.zeros(shape, np.float32))
            for n, (key, shape) in enumerate(shapes.items())
        }
        Path(path).write_bytes(zip_file(weights))

    write(
        "mlp.pt",
        {"0.weight": (8, 4), "0.bias": (8,), "2.weight": (2, 8), "2.bias": (2,)},
    )
    write(
        "cnn.pt",
        {
            "features.0.weight": (4, 1, 3, 3),
            "features.0.bias": (4,),
            "features.3.weight": (8, 4, 3, 3),
            "features.3.bias": (8,),
            "classifier.0.weight": (2, 8),
            "classifier.0.bias": (2,),
        },
    )
    return {}


@page("docs/export.md")
def write_tuned_weights(names: Names) -> Names:
    """Write the weights that the commands put into a file."""
    shutil.copy("app/net.safetensors", "tuned.safetensors")
    return {}
