"""Trains the digits classifier with a dashboard in the terminal.

Run it as ``python examples/dashboard/run.py``; it writes ``generated/`` beside itself.
``q`` ends it after a batch, and a second call goes on from there.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from burn import Autodiff, Cpu, Tensor, data, loss, nn, optim, train
from burn.train.metrics import Accuracy, CpuUse, FBeta, Loss
from burn_import import ModelGen

HERE = Path(__file__).parent
MODEL = HERE.parents[1] / "models" / "digits" / "digits.onnx"
OUT = HERE / "generated"
BATCH, EPOCHS = 32, 12


def generate() -> Any:
    """Return the class generated from the ONNX file."""
    ModelGen().input(str(MODEL)).out_dir(str(OUT)).run_from_script()
    sys.path.insert(0, str(OUT))
    return import_module(MODEL.stem).Digits


def load_batches(name: str, shuffle: int | None = None) -> data.Loader:
    """Return batches of images float32[N, 1, 8, 8] and labels int64[N]."""
    with np.load(MODEL.with_name(f"digits_{name}.npz")) as arrays:
        pairs = data.Memory(arrays["images"], arrays["labels"])
    return data.Loader(pairs, batch=BATCH, shuffle=shuffle)


def create_learner(steps: int) -> train.Learner:
    """Return a learner of a classifier with new weights, for ``steps`` batches."""
    nn.init.seed(0)
    model = generate().load()
    model.head.linear = nn.Linear(model.head.linear.in_features, 10)
    model.to(Autodiff(Cpu()))
    opt = optim.AdamW(model, lr=1e-3, groups={"head.*": {"lr": 1e-2}}, clip_norm=5.0)

    @train.step(model, opt, optim.cosine(opt, steps, warmup=5))
    def step(images: Tensor, labels: Tensor) -> train.Classified:
        logits = model(images)
        scored = loss.cross_entropy(logits, labels, label_smoothing=0.05)
        return train.Classified(scored, logits, labels)

    return train.Learner(
        OUT / "run",
        step,
        metrics=[Loss(), Accuracy(), FBeta(10), CpuUse()],
        checkpoints=train.KeepBest("valid/accuracy"),
        stop=train.Patience(6, "valid/loss"),
        loggers=[train.Dashboard()],
    )


def main() -> float:
    """Return the accuracy on the test set."""
    loader = load_batches("train", shuffle=0)
    learner = create_learner(EPOCHS * len(loader))
    valid = load_batches("test")
    result = learner.fit(loader, valid, epochs=EPOCHS, resume=True)
    result.model.save_weights(OUT / "tuned.safetensors")
    accuracy = result.history[-1]["valid/accuracy"]
    print(f"{accuracy:.1%} of the test images after {len(result.history)} epochs")
    return accuracy


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("Interrupted; run it again to go on.")
