"""Measures steps of training on a CUDA device: `burn`, PyTorch and `torch.compile`.

    python -m benchmarks.gpu_training [--networks resnet50 bert] [--rounds 5]
                                      [--engines compiled torch default]
                                      [--precision tf32] [--traces FOLDER]

ResNet-50 at batch 32, and BERT-base at batch 8 and 128 tokens, in TensorFloat-32 or in
mixed precision (``bf16``, or ``fp16`` with scaled losses; the weights are in float32):
the cross entropy, its gradients and AdamW. Weights are random, and engines take turns
as in :mod:`benchmarks.gpu`. ``default`` is ``torch.compile`` of the network without a
mode, whose optimizer runs by itself. Losses are those after the same number of steps.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import burn
from benchmarks import training_ours
from benchmarks.cases import print_table
from benchmarks.gpu import ERRORS, WARM_UP, Engine, measure, trace
from benchmarks.training_cases import Bert
from burn import nn, ops, optim, train

BERT = Bert(size=768, heads=12, layers=12)
ENGINES = ("eager", "compiled", "torch", "default", "reduce-overhead")
RATE = 1e-4
#: Blocks, channels and stride of each stage of ResNet-50.
STAGES = ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2))
HEAD = ("network", "engine", "ms", "host ms", "kernels", "first loss", "last loss")


class Bottleneck(nn.Module):
    """Three convolutions beside a shortcut."""

    def __init__(self, inputs: int, channels: int, stride: int) -> None:
        outputs = 4 * channels
        convs = [nn.Conv2d(inputs, channels, 1, bias=False)]
        convs += [nn.Conv2d(channels, channels, 3, stride, 1, bias=False)]
        convs += [nn.Conv2d(channels, outputs, 1, bias=False)]
        self.convs = nn.ModuleList(convs)
        self.norms = nn.ModuleList(
            [nn.BatchNorm2d(size) for size in (channels, channels, outputs)]
        )
        self.shortcut = nn.ModuleList[Any]()
        if stride != 1 or inputs != outputs:
            self.shortcut.append(nn.Conv2d(inputs, outputs, 1, stride, bias=False))
            self.shortcut.append(nn.BatchNorm2d(outputs))

    def __call__(self, x: Any) -> Any:
        y = x
        for number, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            y = norm(conv(y))
            y = ops.relu(y) if number < 2 else y
        for layer in self.shortcut:
            x = layer(x)
        return ops.relu(x + y)


class ResNet50(training_ours.ResNet):
    """[N, 3, H, W] to 1000 classes."""

    def __init__(self) -> None:
        self.conv = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.norm = nn.BatchNorm2d(64)
        blocks, inputs = [], 64
        for count, channels, stride in STAGES:
            for number in range(count):
                blocks.append(Bottleneck(inputs, channels, 1 if number else stride))
                inputs = 4 * channels
        self.blocks = nn.ModuleList(blocks)
        self.classifier = nn.Linear(inputs, 1000)


def batch(name: str) -> tuple[Any, Any, int]:
    """Inputs, the number of the class of each, and how many classes there are."""
    generator = np.random.default_rng(0)
    if name == "bert":
        x: Any = generator.integers(0, BERT.tokens, (8, BERT.length))
        return x, generator.integers(0, 2, 8), 2
    x = generator.standard_normal((32, 3, 224, 224), np.float32)
    return x, generator.integers(0, 1000, 32), 1000


def ours(name: str, engine: str, precision: Any) -> tuple[Callable[[], Any], Any]:
    """A step of burn, and the step with its notes."""
    device = burn.Cuda(0)
    device.tf32 = True
    net: Any = ResNet50() if name == "resnet50" else training_ours.BertTiny(BERT)
    net.to(burn.Autodiff(device))
    numbers, chosen, classes = batch(name)
    x = burn.from_numpy(numbers, device)
    target = burn.from_numpy(np.eye(classes, dtype=np.float32)[chosen], device)

    @train.step(
        net,
        optim.AdamW(net, lr=RATE),
        compiled=engine == "compiled",
        precision="float32" if precision == "tf32" else precision,
    )
    def step(x: Any, target: Any) -> Any:
        return training_ours.loss_of(net, x, target)

    return lambda: step(x, target), step


def theirs(name: str, engine: str, precision: str) -> Callable[[], Any]:
    """A step of PyTorch."""
    import torch
    import torchvision

    from benchmarks import training_torch

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    is_image = name == "resnet50"
    net = torchvision.models.resnet50() if is_image else training_torch.BertTiny(BERT)
    net = net.cuda()
    numbers, chosen, _ = batch(name)
    x, target = torch.from_numpy(numbers).cuda(), torch.from_numpy(chosen).cuda()
    if is_image:
        x, net = (each.to(memory_format=torch.channels_last) for each in (x, net))
    optimizer = torch.optim.AdamW(net.parameters(), RATE)
    forward = net
    if engine != "torch":
        forward = torch.compile(net, mode=engine)

    dtype = torch.float16 if precision == "fp16" else torch.bfloat16
    scaler = torch.amp.GradScaler("cuda", enabled=precision == "fp16")

    def step() -> Any:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype, enabled=precision != "tf32"):
            loss = torch.nn.functional.cross_entropy(forward(x), target)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    return step


def engine_of(
    name: str, engine: str, precision: str
) -> tuple[Engine, float, list[str]]:
    """An engine after its first steps, its first loss, and what it notes."""
    step: Any = None
    if engine in ("eager", "compiled"):
        call, step = ours(name, engine, precision)
        losses = [float(call().numpy()) for _ in range(WARM_UP)]
    else:
        call = theirs(name, engine, precision)
        losses = [float(call().item()) for _ in range(WARM_UP)]
    result = Engine(engine, call, losses)
    if engine == "compiled":
        bound = step._train.executables
        result.kernels = next((each.kernels for each in bound), None)
    return result, losses[0], [] if step is None else step.notes


def measured(name: str, options: Any) -> list[list[str]]:
    """The lines of the table for a network."""
    engines, losses = [], []
    for each in options.engines:
        try:
            engine, loss, notes = engine_of(name, each, options.precision)
        except ERRORS as error:
            print(f"{name} {each}: {error!r}"[:600], flush=True)
            continue
        for note in notes:
            print(f"{name} {each}: {note}")
        engines.append(engine)
        losses.append(loss)
    measure(engines, options.rounds)
    lines = []
    for engine, loss in zip(engines, losses, strict=True):
        if options.traces:
            options.traces.mkdir(parents=True, exist_ok=True)
            trace(engine, options.traces / f"training_{name}_{engine.name}.txt")
        wall, host = (median(t) * 1e3 for t in (engine.wall, engine.host))
        last = float(engine.call())
        line = [name, engine.name, f"{wall:.3f}", f"{host:.3f}"]
        lines.append([*line, str(engine.kernels or ""), f"{loss:.4f}", f"{last:.4f}"])
        print(json.dumps(lines[-1]), flush=True)
    return lines


def main() -> None:
    """Print a table of times of steps of training on the first CUDA device."""
    parser = argparse.ArgumentParser(description="Measures training on a GPU.")
    parser.add_argument("--networks", nargs="*", default=["resnet50", "bert"])
    parser.add_argument("--engines", nargs="*", default=ENGINES[1:4], choices=ENGINES)
    parser.add_argument("--precision", default="tf32", choices=["tf32", "bf16", "fp16"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--traces", type=Path, help="folder of lists of kernels")
    options = parser.parse_args()
    lines = [line for name in options.networks for line in measured(name, options)]
    print_table(HEAD, lines)


if __name__ == "__main__":
    main()
