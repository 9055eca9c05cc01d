"""Low-rank adaptation of layers (E. Hu et al., 2021), with the names of peft."""

from __future__ import annotations

from typing import TypeVar

from burn import ops
from burn.box import Parameter
from burn.nn import init
from burn.nn.linear import Conv1D, Linear
from burn.nn.mixins import original_class, set_original_class
from burn.nn.module import Module
from burn.nn.patterns import matches
from burn.tensor import Tensor

M = TypeVar("M", bound=Module)


class LoRALinear(Linear):
    """A :class:`Linear` plus ``x @ lora_A.mT @ lora_B.mT * scaling``.

    ``lora_A`` is [rank, in], ``lora_B`` [out, rank].
    """

    lora_A: Parameter  # noqa: N815
    lora_B: Parameter  # noqa: N815
    scaling: float

    def __call__(self, x: Tensor) -> Tensor:
        low = ops.linear(x, self.lora_A) * self.scaling
        return ops.linear(x, self.weight, self.bias) + ops.linear(low, self.lora_B)

    def difference(self) -> Tensor:
        """Return the adapter's addend of ``weight``."""
        return (self.lora_B.value @ self.lora_A.value).detach() * self.scaling


class LoRAConv1D(Conv1D):
    """A :class:`Conv1D` plus ``x @ lora_A.mT @ lora_B.mT * scaling``.

    ``lora_A`` is [rank, nx], ``lora_B`` [nf, rank].
    """

    lora_A: Parameter  # noqa: N815
    lora_B: Parameter  # noqa: N815
    scaling: float

    def __call__(self, x: Tensor) -> Tensor:
        low = ops.linear(x, self.lora_A) * self.scaling
        return super().__call__(x) + ops.linear(low, self.lora_B)

    def difference(self) -> Tensor:
        """Return the adapter's addend of ``weight``."""
        product = self.lora_B.value @ self.lora_A.value
        return product.mT.detach() * self.scaling


def lora(model: M, *patterns: str, rank: int = 8, alpha: float | None = None) -> M:
    """Add adapters to the linear layers whose paths match, and return ``model``.

    Without a pattern every linear layer gets one. The first call freezes all parameters
    of the model, unless some are frozen already: then those that are not stay trained,
    but for the adapted layers. Another call adds adapters and does not change
    which other parameters are trained.
    ``lora_A`` and ``lora_B`` are new keys of the layer. Results are unchanged until
    they are trained. Their product is multiplied by ``alpha / rank``; ``alpha`` is
    ``rank`` by default.
    Layers are changed in place, so every use of a shared layer is adapted.
    :func:`merge_lora` adds the adapters to the weights.

    Raises:
        ValueError: a pattern matches no :class:`Linear` or :class:`Conv1D`, or
            ``rank`` < 1.
    """
    if rank < 1:
        raise ValueError(f"expected rank >= 1, got {rank}")
    chosen = _matching(model, patterns or ("*",))
    is_first = not any(
        isinstance(m, LoRALinear | LoRAConv1D) for _, m in model.modules()
    )
    if is_first and all(box.requires_grad for _, box in model.parameters()):
        model.freeze()
    scaling = (rank if alpha is None else alpha) / rank
    for layer in chosen:
        layer.freeze()
        _adapt(layer, rank, scaling)
    return model


def _matching(model: Module, patterns: tuple[str, ...]) -> list[Module]:
    """Return the layers whose paths match, each once."""
    layers = {p: m for p, m in model.modules() if original_class(m) in (Linear, Conv1D)}
    chosen: dict[Module, None] = {}
    for pattern in patterns:
        of_pattern = [layer for path, layer in layers.items() if matches(path, pattern)]
        if not of_pattern:
            raise ValueError(
                f"expected a pattern of linear layers, got {pattern!r}; there are "
                f"{', '.join(layers) or 'none'}"
            )
        chosen.update(dict.fromkeys(of_pattern))
    return list(chosen)


def _adapt(layer: Module, rank: int, scaling: float) -> None:
    """Convert a layer to one with an adapter, in place."""
    if isinstance(layer, Linear):
        shape = (layer.out_features, layer.in_features)
        set_original_class(layer, LoRALinear)
    else:
        assert isinstance(layer, Conv1D)
        shape = (layer.nf, layer.nx)
        set_original_class(layer, LoRAConv1D)
    assert isinstance(layer, LoRALinear | LoRAConv1D)
    outputs, inputs = shape
    kind = layer.weight.dtype
    home = layer.weight.held().backend
    layer.lora_A = Parameter(init.uniform((rank, inputs), inputs**-0.5, kind))
    layer.lora_B = Parameter(init.constant((outputs, rank), 0.0, kind))
    layer.lora_A.to(home)
    layer.lora_B.to(home)
    layer.scaling = scaling


def merge_lora(model: M) -> M:
    """Add the adapters to the weights, remove them, and return ``model``.

    Its keys are those before :func:`lora`. Its parameters stay frozen.

    Raises:
        ValueError: the model has no adapters.
    """
    adapted = [m for _, m in model.modules() if isinstance(m, LoRALinear | LoRAConv1D)]
    if not adapted:
        raise ValueError(f"expected layers with adapters in {type(model).__name__}")
    for layer in dict.fromkeys(adapted):
        layer.weight.set(layer.weight.detach() + layer.difference())
        del layer.lora_A, layer.lora_B, layer.scaling
        is_linear = isinstance(layer, LoRALinear)
        set_original_class(layer, Linear if is_linear else Conv1D)
    return model
