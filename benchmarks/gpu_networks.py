"""The networks that are measured on a GPU, imported once for any batch size."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import burn
from burn_import.options import Options
from burn_import.pipeline import import_model, write_model

#: Images from which statistics of batch norms are taken.
SAMPLES = 8
#: The largest batch that an exported network takes.
MOST = 256
#: The spread of weights that are zero at first.
SPREAD = 0.02


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

    whisper: dict[str, Any] = {
        "d_model": 384,
        "encoder_layers": 4,
        "encoder_attention_heads": 6,
    }
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


def network(name: str, batch: int) -> tuple[Any, Any]:
    """A network with random weights, of which none are zero, and its input.

    Its batch norms have the statistics of random images. With those of a new network
    float16 results of deep networks are zero in PyTorch too.
    """
    import torch

    torch.manual_seed(0)
    net, x = networks()[name](batch)
    torch.manual_seed(1)  # the same numbers for any batch
    with torch.no_grad():
        for parameter in net.parameters():
            if parameter.ndim > 1 and not parameter.any():
                parameter.normal_(std=SPREAD)
        norms = [m for m in net.modules() if isinstance(m, torch.nn.BatchNorm2d)]
        for norm in norms:
            norm.momentum = 1.0
        if norms:
            net.train()(torch.randn(SAMPLES, *x.shape[1:]))
    return net.eval(), x


def exact(net: Any, x: Any) -> Any:
    """The result in float64, computed on the device."""
    from copy import deepcopy

    wide = deepcopy(net).double().cuda()
    x = x.cuda()
    return wide(x.double() if x.is_floating_point() else x).cpu().numpy()


def imported(name: str, dtype: str | None, folder: Path) -> Any:
    """The imported network with its weights on the device."""
    output = prepared(name, dtype, folder)
    spec = importlib.util.spec_from_file_location(output.stem, output)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    net = getattr(module, output.with_suffix(".class").read_text())
    return net.load(backend=burn.Cuda(0))


def prepared(name: str, dtype: str | None, folder: Path) -> Path:
    """The source of the imported network, with its weights beside it."""
    output = folder / f"{name}_{dtype or 'float32'}.py"
    if not output.exists():
        options = Options(stem=output.stem, dtype=dtype)
        compiled = import_model(_exported(name, folder), options)
        output.with_suffix(".class").write_text(compiled.class_name)
        write_model(compiled, output)
    return output


def _exported(name: str, folder: Path) -> Path:
    import torch

    path = folder / f"{name}.pt2"
    if not path.exists():
        net, x = network(name, 2)
        batch = torch.export.Dim("batch", max=MOST)
        with torch.no_grad():
            program = torch.export.export(net, (x,), dynamic_shapes=({0: batch},))
        torch.export.save(program, path)
    return path
