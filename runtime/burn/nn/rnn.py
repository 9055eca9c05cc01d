"""Recurrent layers with PyTorch's parameters, names and order of gates."""

from collections.abc import Callable
from typing import Any, ClassVar

from burn.box import Parameter
from burn.dtypes import DType, float32
from burn.nn import init
from burn.nn.dropout import Dropout
from burn.nn.module import Module
from burn.ops.padding import stack
from burn.ops.rnn import gru, lstm, rnn
from burn.ops.shape import concat, split
from burn.tensor import Tensor

_NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


class Recurrent(Module):
    """Layers of one recurrent kind on top of each other; the base of LSTM, GRU and RNN.

    Parameters are ``weight_ih_l0`` ``[gates hidden, input]``, ``weight_hh_l0`` ``[gates
    hidden, hidden]``, ``bias_ih_l0`` and ``bias_hh_l0`` ``[gates hidden]``, and the
    same with ``_reverse``; drawn uniformly within ``1 / sqrt(hidden_size)``.
    ``dropout`` is the probability with which outputs of all layers but the last become
    0 in training.
    """

    #: PyTorch's gates in ONNX's order.
    gates: ClassVar[tuple[int, ...]]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: DType = float32,
    ) -> None:
        super().__init__()
        #: Between layers; a stack without it draws no random state.
        self.dropout = Dropout(dropout) if dropout and num_layers > 1 else None
        self.input_size, self.hidden_size = input_size, hidden_size
        self.num_layers, self.bias = num_layers, bias
        self.batch_first, self.bidirectional = batch_first, bidirectional
        rows = len(self.gates) * hidden_size
        for layer in range(num_layers):
            width = input_size if layer == 0 else hidden_size * len(self._suffixes)
            shapes = ((rows, width), (rows, hidden_size), (rows,), (rows,))
            for suffix in self._suffixes:
                for name, shape in zip(_NAMES, shapes, strict=True):
                    if bias or not name.startswith("bias"):
                        value = init.kaiming_uniform(shape, hidden_size, dtype)
                        path = f"{name}_l{layer}{suffix}"
                        setattr(self, path, Parameter(value))

    @property
    def _suffixes(self) -> tuple[str, ...]:
        return ("", "_reverse") if self.bidirectional else ("",)

    def _weights(self, layer: int) -> list[Tensor | None]:
        """Return W, R and B of one layer in ONNX's layout."""
        parts = []
        for name in _NAMES[:2]:
            parts.append(stack([self._gated(name, layer, s) for s in self._suffixes]))
        if not self.bias:
            return [*parts, None]
        both = [
            concat([self._gated(name, layer, s) for name in _NAMES[2:]])
            for s in self._suffixes
        ]
        return [*parts, stack(both)]

    def _gated(self, name: str, layer: int, suffix: str) -> Tensor | Parameter:
        """Return one parameter with its gates in ONNX's order."""
        value: Parameter = getattr(self, f"{name}_l{layer}{suffix}")
        if len(self.gates) == 1:
            return value
        pieces = split(value, (self.hidden_size,) * len(self.gates), 0)
        return concat([pieces[gate] for gate in self.gates])

    def _run(
        self,
        cell: Callable[..., tuple[Tensor, ...]],
        x: Tensor,
        states: tuple[Tensor, ...],
        **options: Any,
    ) -> tuple[Tensor, ...]:
        """Return the outputs of the last layer, and the last states of all layers."""
        if self.batch_first:
            x = x.transpose(0, 1)
        count = len(self._suffixes)
        options["direction"] = "bidirectional" if count == 2 else "forward"
        ends = []
        for layer in range(self.num_layers):
            x = self.dropout(x) if layer and self.dropout is not None else x
            first = [s[layer * count : (layer + 1) * count] for s in states]
            y, *last = cell(x, *self._weights(layer), *first, **options)
            time, _, batch, hidden = y.shape
            x = y.permute(0, 2, 1, 3).reshape(time, batch, count * hidden)
            ends.append(last)
        joined = [concat(list(parts)) for parts in zip(*ends, strict=True)]
        return (x.transpose(0, 1) if self.batch_first else x, *joined)

    def describe(self) -> str:
        shown = [str(self.input_size), str(self.hidden_size)]
        if self.num_layers != 1:
            shown.append(f"num_layers={self.num_layers}")
        for name, usual in (
            ("bias", True),
            ("batch_first", False),
            ("bidirectional", False),
        ):
            if getattr(self, name) != usual:
                shown.append(f"{name}={not usual}")
        if self.dropout is not None:
            shown.append(f"dropout={self.dropout.p}")
        return ", ".join(shown)


class LSTM(Recurrent):
    """Long short-term memory (S. Hochreiter and J. Schmidhuber, 1997).

    Called with ``[time, batch, input]`` (``[batch, time, input]`` with ``batch_first``)
    and perhaps ``(h, c)``, each ``[layers directions, batch, hidden]``, it returns
    ``(output, (h, c))``; output is ``[time, batch, directions hidden]``.
    """

    gates = (0, 3, 1, 2)

    def __call__(
        self, x: Tensor, state: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        y, h, c = self._run(lstm, x, () if state is None else state)
        return y, (h, c)


class GRU(Recurrent):
    """Gated recurrent units (K. Cho et al., 2014).

    Called with ``[time, batch, input]`` (``[batch, time, input]`` with ``batch_first``)
    and perhaps ``h`` ``[layers directions, batch, hidden]``, it returns ``(output,
    h)``; output is ``[time, batch, directions hidden]``.
    """

    gates = (1, 0, 2)

    def __call__(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        states = () if state is None else (state,)
        y, h = self._run(gru, x, states, linear_before_reset=True)
        return y, h


class RNN(Recurrent):
    """Simple recurrent layers (J. Elman, 1990), with the interface of :class:`GRU`.

    ``nonlinearity`` is ``"tanh"`` or ``"relu"``.
    """

    gates = (0,)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: DType = float32,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"expected tanh or relu, got {nonlinearity!r}")
        sizes = input_size, hidden_size, num_layers
        super().__init__(*sizes, bias, batch_first, dropout, bidirectional, dtype)
        self.nonlinearity = nonlinearity

    def __call__(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        states = () if state is None else (state,)
        names = (self.nonlinearity,) * len(self._suffixes)
        y, h = self._run(rnn, x, states, activations=names)
        return y, h
