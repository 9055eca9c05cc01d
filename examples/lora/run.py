"""Trains a small GPT-2 on this project's documentation, then adapts it to its code.

The adaptation trains low-rank adapters alone (less than 2 % of the parameters). Run it
as ``python examples/lora/run.py``; it writes ``generated/`` beside itself.
"""

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import burn
from burn import Autodiff, Cpu, Tensor, loss, nn, optim, train
from burn.record import write_record
from burn_import import ModelGen

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
OUT = HERE / "generated"
SYMBOLS, WIDTH, LENGTH, LAYERS, HEADS, BATCH = 128, 128, 48, 2, 4, 12
PRETRAINING, ADAPTATION = 200, 100


def write_gpt2(folder: Path) -> Path:
    """Write random weights with GPT-2's names and initialization, and its config."""
    rng = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "wte.weight": (SYMBOLS, WIDTH),
        "wpe.weight": (LENGTH, WIDTH),
        "ln_f.weight": (WIDTH,),
        "ln_f.bias": (WIDTH,),
    }
    for number in range(LAYERS):
        for norm in ("ln_1", "ln_2"):
            shapes[f"h.{number}.{norm}.weight"] = (WIDTH,)
            shapes[f"h.{number}.{norm}.bias"] = (WIDTH,)
        for name, inputs, outputs in (
            ("attn.c_attn", WIDTH, 3 * WIDTH),
            ("attn.c_proj", WIDTH, WIDTH),
            ("mlp.c_fc", WIDTH, 4 * WIDTH),
            ("mlp.c_proj", 4 * WIDTH, WIDTH),
        ):
            shapes[f"h.{number}.{name}.weight"] = (inputs, outputs)
            shapes[f"h.{number}.{name}.bias"] = (outputs,)
    weights = {
        f"transformer.{key}": (
            0.02 * rng.standard_normal(shape, np.float32)
            if len(shape) == 2
            else np.full(shape, key.endswith(".weight"), np.float32)
        )
        for key, shape in shapes.items()
    }
    folder.mkdir(parents=True, exist_ok=True)
    config = {"model_type": "gpt2", "n_head": HEADS}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    write_record(folder / "gpt2.safetensors", weights.items())
    return folder / "gpt2.safetensors"


def generate() -> Any:
    """Return the model generated from the weights."""
    source = write_gpt2(OUT / "weights")
    ModelGen().input(str(source)).out_dir(str(OUT)).run_from_script()
    sys.path.insert(0, str(OUT))
    return import_module("gpt2").Gpt2.load()


def read_text(pattern: str) -> NDArray[np.int64]:
    """Return the ASCII characters of files of the repository as numbers."""
    files = sorted(ROOT.glob(pattern))
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    return np.frombuffer(text.encode("ascii", "ignore"), np.uint8).astype(np.int64)


def split(text: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first nine tenths, for training, and 64 windows of the rest."""
    border = len(text) * 9 // 10
    rest = text[border:]
    starts = np.linspace(0, len(rest) - LENGTH - 1, 64).astype(np.int64)
    return text[:border], rest[starts[:, None] + np.arange(LENGTH + 1)]


def windows(text: NDArray[np.int64], count: int) -> Iterator[Tensor]:
    """Yield batches int64[BATCH, LENGTH + 1] from random places of a text."""
    rng = np.random.default_rng(1)
    for _ in range(count):
        starts = rng.integers(0, len(text) - LENGTH, BATCH)
        yield burn.tensor(text[starts[:, None] + np.arange(LENGTH + 1)])


def training(model: Any, lr: float, steps: int) -> "train.Step[..., train.Classified]":
    """Return a step that predicts each next character."""
    opt = optim.AdamW(model, lr=lr, clip_norm=1.0)

    @train.step(model, opt, optim.cosine(opt, steps, warmup=10))
    def step(ids: Tensor) -> train.Classified:
        inputs, targets = ids[:, :-1], ids[:, 1:]
        mask = burn.tensor(np.ones(inputs.shape, np.int64))
        logits = model(inputs, mask)
        logits = logits.mT  # [N, characters, L]
        return train.Classified(loss.cross_entropy(logits, targets), logits, targets)

    return step


def evaluate(label: str, step: Any, held_out: NDArray[np.int64]) -> tuple[float, float]:
    """Return and print the loss and the accuracy for the next character."""
    output = step.evaluate(burn.tensor(held_out))
    predicted = output.logits.numpy().argmax(1)
    accuracy = float((predicted == output.targets.numpy()).mean())
    print(f"{label}: held-out loss {output.loss.item():.3f}, accuracy {accuracy:.1%}")
    return output.loss.item(), accuracy


def main() -> dict[str, float]:
    """Return losses and accuracies on held-out code, and the share that is trained."""
    nn.init.seed(0)
    model = generate().to(Autodiff(Cpu()))
    documents, held_out = split(read_text("docs/*.md"))
    step = training(model, 1e-3, PRETRAINING)
    for ids in windows(documents, PRETRAINING):
        step(ids)
    evaluate("documentation", step, held_out)

    code, held_out = split(read_text("runtime/burn/ops/*.py"))
    nn.lora(model, "*.attn.c_attn", rank=4)
    trained = sum(b.value.size for _, b in model.parameters() if b.requires_grad)
    share = trained / model.num_parameters()
    print(f"adapters: {trained} parameters, {share:.2%} of the model")
    step = training(model, 5e-3, ADAPTATION)
    before, accuracy_before = evaluate("code before", step, held_out)
    for ids in windows(code, ADAPTATION):
        step(ids)
    after, accuracy_after = evaluate("code after", step, held_out)
    nn.merge_lora(model)
    model.save_weights(OUT / "adapted.safetensors")
    return {
        "before": before,
        "after": after,
        "accuracy before": accuracy_before,
        "accuracy after": accuracy_after,
        "share": share,
    }


if __name__ == "__main__":
    main()
