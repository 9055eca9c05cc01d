"""Models of PyTorch, exported and written as modules of PyTorch again."""

from pathlib import Path
from typing import Any

import pytest

from burn_import.options import Options
from burn_import.pipeline import import_model, write_model
from tests.modules import import_file

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytestmark = pytest.mark.torch

from torch import nn  # noqa: E402  once it is known to be there


class Block(nn.Module):
    """A block of a transformer before which its input is normalized."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(16)
        self.qkv = nn.Linear(16, 48)
        self.proj = nn.Linear(16, 16)
        self.norm2 = nn.LayerNorm(16)
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, x: Any) -> Any:
        query, key, value = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        heads = [
            part.unflatten(-1, (4, 4)).transpose(1, 2) for part in (query, key, value)
        ]
        mixed = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.proj(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    """Two blocks between an embedding and a projection."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.head = nn.Linear(16, 5)

    def forward(self, ids: Any) -> Any:
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def mlp() -> Any:
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


def cnn() -> Any:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=(1, 2)),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 5),
    )


def padded() -> Any:
    return nn.Sequential(
        nn.ReflectionPad2d(1),
        nn.Conv2d(3, 4, 3),
        nn.SELU(),
        nn.Upsample(scale_factor=2),
        nn.ReplicationPad2d((1, 0, 0, 1)),
        nn.Conv2d(4, 4, 2),
        nn.CELU(0.5),
        nn.Conv2d(4, 4, 1),
        nn.Hardsigmoid(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 5),
        nn.LogSoftmax(dim=1),
    )


MODELS: dict[str, tuple[Any, Any]] = {
    "mlp": (mlp, lambda n: torch.randn(n, 6)),
    "cnn": (cnn, lambda n: torch.randn(n, 3, 8, 8)),
    "padded": (padded, lambda n: torch.randn(n, 3, 8, 8)),
    "transformer": (Transformer, lambda n: torch.randint(20, (n, 7))),
}


@pytest.fixture(params=MODELS)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, Any, Any]:
    """A model, the module that is written for it, and what makes an input."""
    torch.manual_seed(3)
    make, inputs = MODELS[request.param]
    model = make().eval()
    batch = {0: torch.export.Dim("batch", min=1)}
    program = torch.export.export(model, (inputs(2),), dynamic_shapes=(batch,))
    torch.export.save(program, tmp_path / "model.pt2")
    options = Options(class_name="Net", stem="net", target="torch")
    compiled = import_model(tmp_path / "model.pt2", options)
    written = write_model(compiled, tmp_path / "net.py").module
    return model, import_file(written).Net.load(), inputs


def test_the_module_gives_the_same_for_any_batch(pair: tuple[Any, Any, Any]) -> None:
    model, module, inputs = pair
    for count in (1, 5):
        x = inputs(count)
        torch.testing.assert_close(module(x), model(x))


def test_weights_go_both_ways(pair: tuple[Any, Any, Any]) -> None:
    model, module, inputs = pair
    assert list(module.state_dict()) and module.state_dict().keys() == (
        model.state_dict().keys()
    )
    for parameter in model.parameters():
        parameter.data.mul_(1.5)
    module.load_state_dict(model.state_dict())
    x = inputs(2)
    torch.testing.assert_close(module(x), model(x))
    model.load_state_dict(module.state_dict())


def test_training_changes_both_alike(pair: tuple[Any, Any, Any]) -> None:
    model, module, inputs = pair
    x = inputs(4)
    for one in (model, module):
        one.train()
        step = torch.optim.SGD(one.parameters(), lr=0.1)
        (one(x) ** 2).mean().backward()
        step.step()
    pairs = zip(sorted(model.state_dict()), sorted(module.state_dict()), strict=True)
    for ours, theirs in pairs:
        a, b = module.state_dict()[theirs], model.state_dict()[ours]
        torch.testing.assert_close(a, b)


def test_new_tensors_are_where_the_input_is(pair: tuple[Any, Any, Any]) -> None:
    """The device ``meta`` refuses tensors of others, as a GPU does."""
    _, module, inputs = pair
    assert module.to("meta")(inputs(2).to("meta")).device.type == "meta"
