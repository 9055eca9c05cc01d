"""Measures inference on a CUDA device: `burn`, PyTorch eager and `torch.compile`.

    python -m benchmarks.gpu [--networks resnet50 bert] [--batches 1 8]
                             [--precisions tf32 float16] [--engines eager torch]
                             [--rounds 5] [--profile LINES] [--check]

The networks are torchvision's and transformers', with random weights, exported with
``torch.export`` and imported. Engines take turns in one process; a time is the median
over the rounds of the wall time of a call, with the device synchronised after a series
of calls. ``host`` is the time that the Python thread needs for one call. The error is
the largest difference from PyTorch on the CPU in float64, relative to the largest
element. ``reduce-overhead`` and ``max-autotune`` are modes of ``torch.compile``.
``kernels`` is the number of kernels in the CUDA graph. With ``--check`` every fused
kernel is compared with its parts, and the first one that differs by more than a
thousandth is printed with its step.
"""

from __future__ import annotations

import argparse
import cProfile
import importlib.util
import pstats
import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

import burn
from benchmarks.cases import print_table
from burn_import.options import Options
from burn_import.pipeline import import_model, write_model

HEAD = (
    *("network", "batch", "precision", "engine"),
    *("ms", "host ms", "error", "kernels"),
)
OURS = ("eager", "compiled")
MODES = ("reduce-overhead", "max-autotune")
ENGINES = (*OURS, "torch", *MODES)
PRECISIONS = ("float32", "tf32", "float16")
#: Seconds of one turn of an engine.
TURN = 0.1
WARM_UP = 3


@dataclass
class Engine:
    """A function of no arguments that computes once, and its times."""

    name: str
    call: Callable[[], Any]
    result: Any
    kernels: str = ""
    wall: list[float] = field(default_factory=list)
    host: list[float] = field(default_factory=list)


def networks() -> dict[str, Callable[[int], tuple[Any, Any]]]:
    """By name: the network, and an input of a batch size."""
    import torch
    import torchvision
    import transformers

    class First(torch.nn.Module):  # type: ignore[misc]
        """The first result of a network of transformers."""

        def __init__(self, net: Any) -> None:
            super().__init__()
            self.net = net

        def forward(self, x: Any) -> Any:
            return self.net(x)[0]

    def image(name: str) -> Callable[[int], tuple[Any, Any]]:
        build = getattr(torchvision.models, name)
        return lambda batch: (build(), torch.randn(batch, 3, 224, 224))

    def text(build: Callable[[], Any]) -> Callable[[int], tuple[Any, Any]]:
        return lambda batch: (First(build()), torch.randint(5, 1000, (batch, 128)))

    whisper = {"d_model": 384, "encoder_layers": 4, "encoder_attention_heads": 6}
    names = ("resnet50", "mobilenet_v2", "convnext_tiny", "efficientnet_b0")
    return {
        **{name: image(name) for name in (*names, "vit_b_16", "swin_t")},
        "bert": text(lambda: transformers.BertModel(transformers.BertConfig())),
        "gpt2": text(
            lambda: transformers.GPT2Model(transformers.GPT2Config(use_cache=False))
        ),
        "whisper_encoder": lambda batch: (
            First(
                transformers.models.whisper.modeling_whisper.WhisperEncoder(
                    transformers.WhisperConfig(encoder_ffn_dim=1536, **whisper)
                )
            ),
            torch.randn(batch, 80, 3000),
        ),
    }


def engines(
    net: Any, x: Any, precision: str, wanted: list[str], folder: Path, check: bool
) -> Iterator[Engine]:
    """The engines that are wanted, each called once."""
    import torch

    half = precision == "float16"
    tf32 = precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    ours = [name for name in wanted if name in OURS]
    if ours:
        burn.Cuda(0).tf32 = tf32
        module = imported(net, x, "float16" if half else None, folder)
        given = burn.from_numpy(_as(x, half).numpy(), burn.Cuda(0))
        for name in ours:
            call = module if name == "eager" else burn.compile(module)
            for _ in range(WARM_UP):  # the first call of a compiled module records
                result = call(given)
            for note in getattr(call, "notes", ()):
                print(f"{name}: {note}")
            engine = Engine(name, partial(call, given), result.numpy())
            _inspect(engine, call, given, check)
            yield engine
    if not set(wanted) - set(ours):
        return
    theirs = deepcopy(net).cuda()
    theirs = theirs.half() if half else theirs
    there = _as(x, half).cuda()
    if "torch" in wanted:
        eager = torch.inference_mode()(theirs)
        yield Engine("torch", partial(eager, there), eager(there).cpu().numpy())
    for mode in wanted:
        if mode in MODES:
            call = torch.compile(theirs, mode=mode)
            yield Engine(mode, partial(call, there), call(there).cpu().numpy())


def _inspect(engine: Engine, call: Any, given: Any, check: bool) -> None:
    """Count the kernels of a compiled function's graph; compare fused ones."""
    for executable in getattr(call, "executables", ()):
        engine.kernels = str(getattr(executable, "kernels", ""))
        if check:
            _check(executable, given)


def _check(executable: Any, given: Any) -> None:
    """Print how far fused kernels are from their parts."""
    steps = list(executable.compared([given.data]))
    worst = max((error for _, _, error in steps), default=0.0)
    print(f"{len(steps)} fused steps, at most {worst:.1e} from their parts")
    for number, step, error in steps:
        if not error <= 1e-3:
            name, shape = step.primitive.name, list(step.shapes[0])
            print(f"first above 1e-3: step {number}, {name} {shape}: {error:.1e}")
            print(f"  {step.static}")
            break


def _as(x: Any, half: bool) -> Any:
    return x.half() if half and x.is_floating_point() else x


def imported(net: Any, x: Any, dtype: str | None, folder: Path) -> Any:
    """The imported network with its weights on the device."""
    import torch

    path = folder / "net.pt2"
    torch.export.save(torch.export.export(net, (x,)), path)
    output = folder / f"net_{len(list(folder.iterdir()))}.py"
    compiled = import_model(path, Options(stem=output.stem, dtype=dtype))
    write_model(compiled, output)
    spec = importlib.util.spec_from_file_location(output.stem, output)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, compiled.class_name).load(backend=burn.Cuda(0))


def measure(results: list[Engine], rounds: int) -> None:
    """Let the engines take turns."""
    import torch

    for engine in results:
        for _ in range(WARM_UP):
            engine.call()
    torch.cuda.synchronize()
    for _ in range(rounds):
        for engine in results:
            start = perf_counter()
            engine.call()
            torch.cuda.synchronize()
            count = max(3, int(TURN / (perf_counter() - start)))
            start = perf_counter()
            for _ in range(count):
                engine.call()
            engine.host.append((perf_counter() - start) / count)
            torch.cuda.synchronize()
            engine.wall.append((perf_counter() - start) / count)


def rows(options: Any) -> Iterator[list[str]]:
    """The rows of the table."""
    import torch

    built = networks()
    with TemporaryDirectory() as name, torch.no_grad():
        for network in options.networks or built:
            for batch in options.batches:
                torch.manual_seed(0)
                net, x = built[network](batch)
                net.eval()
                with torch.inference_mode(mode=False), torch.no_grad():
                    exact = _exact(net, x)
                    for precision in options.precisions:
                        head = [network, str(batch), precision]
                        yield from _measured(net, x, exact, head, options, Path(name))


def _exact(net: Any, x: Any) -> Any:
    wide = deepcopy(net).double()
    return wide(x.double() if x.is_floating_point() else x).numpy()


def _measured(
    net: Any, x: Any, exact: Any, head: list[str], options: Any, folder: Path
) -> Iterator[list[str]]:
    results = list(engines(net, x, head[2], options.engines, folder, options.check))
    measure(results, options.rounds)
    for engine in results:
        error = np.abs(engine.result - exact).max() / (np.abs(exact).max() or 1)
        wall, host = (median(times) * 1e3 for times in (engine.wall, engine.host))
        row = [*head, engine.name, f"{wall:.3f}", f"{host:.3f}", f"{error:.1e}"]
        yield [*row, engine.kernels]
        if options.profile and engine.name in OURS:
            _profile(engine, options.profile)


def _profile(engine: Engine, lines: int) -> None:
    profile = cProfile.Profile()
    for _ in range(10):
        profile.runcall(engine.call)
    pstats.Stats(profile).sort_stats("tottime").print_stats(lines)


def main() -> None:
    """Print a table of inference times on the first CUDA device."""
    parser = argparse.ArgumentParser(description="Measures inference on a GPU.")
    parser.add_argument("--networks", nargs="*", default=[])
    parser.add_argument("--batches", nargs="*", type=int, default=[1, 8, 64])
    parser.add_argument("--precisions", nargs="*", default=PRECISIONS)
    parser.add_argument("--engines", nargs="*", default=ENGINES, choices=ENGINES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", type=int, default=0, help="lines of a profile")
    parser.add_argument("--check", action="store_true", help="compare fused kernels")
    warnings.simplefilter("once")
    print_table(HEAD, rows(parser.parse_args()))


if __name__ == "__main__":
    main()
