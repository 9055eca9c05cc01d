"""A whole program: adapters, dropout, groups, schedule, steps, learner, and ONNX."""

from pathlib import Path
from typing import Any

import numpy as np

import burn
from burn import Autodiff, Cpu, Tensor, data, loss, nn, optim, train
from burn.train.metrics import Accuracy, Loss
from burn_import import export_onnx, load
from burn_import.verification.session import run_model

MODEL = Path(__file__).parent / "golden" / "transformer" / "model.onnx"


class Classifier(nn.Module):
    """The imported encoder, and a new head on the mean of its results."""

    def __init__(self) -> None:
        super().__init__()
        imported: Any = load(MODEL)
        self.encoder = imported
        self.head = nn.Linear(8, 3)

    def __call__(self, x: Tensor) -> Tensor:
        return self.head(self.encoder(x).mean(1))


def samples(count: int, seed: int) -> data.Memory:
    """Return sequences float32[4, 8], and which of three features is largest."""
    x = np.random.default_rng(seed).standard_normal((count, 4, 8), np.float32)
    return data.Memory(x, x[:, :, :3].mean(1).argmax(1))


def tuned_parameters(model: Classifier) -> set[str]:
    """Freeze the encoder, add adapters and dropout; return the trained keys."""
    model.freeze("encoder.*")
    nn.lora(model, "*.query", rank=4)
    nn.dropout(model, "head", p=0.1, seed=0)
    return {path for path, box in model.parameters() if box.requires_grad}


def make_step(model: Classifier) -> train.Step[[Tensor, Tensor], train.Classified]:
    """Return a step with rates of groups, a schedule, clipping and accumulation."""
    opt = optim.AdamW(
        model,
        lr=3e-3,
        weight_decay=0.01,
        clip_norm=1.0,
        groups={"head.*": {"lr": 0.05}},
    )
    schedule = optim.cosine(opt, steps=40, warmup=4)

    @train.step(model, opt, schedule, accumulate=2)
    def step(x: Tensor, y: Tensor) -> train.Classified:
        logits = model(x)
        value = loss.cross_entropy(logits, y, label_smoothing=0.1)
        return train.Classified(value, logits, y)

    return step


def test_an_imported_model_is_tuned_and_deployed(tmp_path: Path) -> None:
    nn.init.seed(0)
    model = Classifier().to(Autodiff(Cpu()))
    trained = tuned_parameters(model)
    places = [f"encoder.encoder.layers.{n}.attention.query.lora_" for n in (0, 1)]
    assert trained == {"head.weight", "head.bias"} | {
        p + x for p in places for x in "AB"
    }
    before = {key: box.numpy().copy() for key, box in model.parameters()}
    step, batches = make_step(model), data.Loader(samples(256, 1), batch=32, shuffle=0)
    for batch in batches:
        step(*batch)
    learner = train.Learner(
        tmp_path / "run",
        step,
        metrics=[Accuracy(), Loss()],
        checkpoints=train.KeepBest("valid/accuracy"),
        stop=train.Patience(3),
        progress=False,
    )
    result = learner.fit(batches, data.Loader(samples(128, 2), batch=32), epochs=6)
    assert step.notes == []
    assert max(values["valid/accuracy"] for values in result.history) > 0.5
    changed = {k for k, box in model.parameters() if (box.numpy() != before[k]).any()}
    assert changed == trained
    nn.merge_lora(result.model)
    result.model.save_weights(tmp_path / "tuned.safetensors")
    x = np.random.default_rng(3).standard_normal((2, 4, 8), np.float32)
    written = export_onnx(result.model, x[:1], tmp_path / "tuned.onnx")
    (actual,), _ = run_model(str(written.path), {"x": x[1:]})
    again = Classifier().load_weights(tmp_path / "tuned.safetensors")
    np.testing.assert_allclose(actual, again(burn.tensor(x[1:])).numpy(), atol=1e-5)
