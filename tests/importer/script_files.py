"""Archives as ``torch.jit.save`` writes them, made by hand: modules, code, inputs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.importer.pytorch_files import (
    Array,
    Entry,
    Name,
    New,
    PickleWriter,
    Stored,
    entries_of,
    tensor,
    view,
    zipped,
)


def module(kind: str, **attributes: Any) -> New:
    """Return a module of a class below ``__torch__``; arrays become tensors."""
    path, _, name = f"__torch__.{kind}".rpartition(".")
    return New(Name(path, name), (), {"training": False, **attributes})


def weight(key: str, *shape: int, seed: int = 0) -> tuple[Array, Any]:
    """Return random values and the tensor of them for a module."""
    array = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    return array, tensor(key, array)


def example(kind: str, *shape: int) -> Any:
    """Return a tensor that a trace was called with: PyTorch leaves its bytes out."""
    count = int(np.prod(shape))
    return view(Stored(f"in{kind}{shape}", f"{kind}Storage", b"", count), shape)


@dataclass(frozen=True)
class Script:
    """An archive: the outermost module, files of code by name, and what else it has.

    ``inputs`` are those of a trace, None for a script.
    """

    root: Any
    code: dict[str, str]
    inputs: Sequence[Any] | None = None
    constants: Any = ()
    more: Sequence[Entry] = field(default_factory=tuple)

    def bytes(self) -> bytes:
        """Return the archive."""
        writer = PickleWriter()
        results = [*entries_of(self.root)]
        pickled = writer.dumps(self.constants)
        results.append(Entry("net/constants.pkl", pickled))
        for key, stored in writer.stored.items():
            results.append(Entry(f"net/constants/{key}", stored.data))
        if self.inputs is not None:
            writer = PickleWriter()
            given = writer.dumps({"forward": list(self.inputs)})
            results.append(Entry("net/traced_inputs.pkl", given))
            results += [Entry(f"net/traced_inputs/{k}", b"") for k in writer.stored]
        for name, text in self.code.items():
            results.append(Entry(f"net/code/{name}", text.encode(), 8))
        return zipped([*results, *self.more])

    def saved(self, folder: Path) -> Path:
        """Return the file that the archive was written to."""
        path = folder / "net.pt"
        path.write_bytes(self.bytes())
        return path


def net(
    forward: str, *inputs: Any, parameters: str = "x: Tensor", **more: Any
) -> Script:
    """Return the archive of one module, whose ``forward`` has these statements."""
    constants = more.pop("constants", ())
    body = "\n".join(f"    {line}" for line in forward.strip("\n").splitlines())
    text = f"""class Net(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  def forward(self: __torch__.Net,
    {parameters}) -> Tensor:
{body}
"""
    return Script(
        module("Net", **more), {"__torch__.py": text}, inputs or None, constants
    )


LINEAR = """class Linear(Module):
  __parameters__ = ["weight", "bias", ]
  __buffers__ = []
  weight : Tensor
  bias : Tensor
  training : bool
  def forward(self: __torch__.torch.nn.modules.linear.Linear,
    argument_1: Tensor) -> Tensor:
    bias = self.bias
    weight = self.weight
    _0 = torch.linear(argument_1, weight, bias)
    return _0
"""
MLP = """class MLP(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  layers : __torch__.torch.nn.modules.container.Sequential
  def forward(self: __torch__.MLP,
    x: Tensor) -> Tensor:
    layers = self.layers
    _1 = getattr(layers, "2")
    layers0 = self.layers
    _0 = getattr(layers0, "0")
    hidden = torch.relu((_0).forward(x, ))
    return torch.softmax((_1).forward(hidden, ), -1)
"""


def mlp() -> tuple[Script, dict[str, Array]]:
    """Return the archive of two linear layers in a list, and their weights."""
    shapes = {"layers.0.weight": (7, 5), "layers.0.bias": (7,)}
    shapes |= {"layers.2.weight": (3, 7), "layers.2.bias": (3,)}
    results = {
        name: weight(str(i), *shape, seed=i)
        for i, (name, shape) in enumerate(shapes.items())
    }
    linear = "torch.nn.modules.linear.Linear"
    layers = {
        index: module(
            linear,
            weight=results[f"layers.{index}.weight"][1],
            bias=results[f"layers.{index}.bias"][1],
        )
        for index in ("0", "2")
    }
    container = module("torch.nn.modules.container.Sequential", **layers)
    code = {"__torch__.py": MLP, "__torch__/torch/nn/modules/linear.py": LINEAR}
    script = Script(module("MLP", layers=container), code, [example("Float", 2, 5)])
    return script, {name: array for name, (array, _) in results.items()}


#: Statements of ``forward`` of most kinds, for x float32[2, 3].
CHANGING = """
y = torch.exp(x)
v = torch.slice(y, 1, 0, 2)
_0 = torch.mul_(v, 3)
outs = annotate(List[Tensor], [])
for i in range(torch.size(x, 0)):
  _1 = torch.append(outs, torch.select(x, 0, i))
if bool(torch.gt(torch.sum(y), 0)):
  z, n = torch.relu(y), 2
else:
  z0 = torch.neg(y)
  z, n = torch.mul(z0, 3), 5
going = True
while going:
  z1 = torch.mul(z, 2)
  going0 = bool(torch.lt(torch.sum(z1), 20))
  going, z = going0, z1
a, b, = torch.split(torch.cat([torch.stack(outs), z], 0), 2)
d = {"a": torch.add(a, n, alpha=2), "b": b}
return (d["a"], torch.reshape(d["b"], [-1, int(ops.prim.NumToTensor(3))]))
"""
