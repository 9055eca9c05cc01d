"""Single steps of recurrent layers, with PyTorch's parameters and order of gates."""

from typing import ClassVar

from burn import ops
from burn.box import Parameter
from burn.dtypes import DType, float32
from burn.nn import init
from burn.nn.module import Module
from burn.tensor import Tensor


class Cell(Module):
    """One step of a recurrent layer; the base of LSTMCell, GRUCell and RNNCell.

    Parameters are ``weight_ih`` ``[gates hidden, input]``, ``weight_hh`` ``[gates
    hidden, hidden]``, ``bias_ih`` and ``bias_hh`` ``[gates hidden]``; drawn uniformly
    within ``1 / sqrt(hidden_size)``.
    """

    gates: ClassVar[int]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        dtype: DType = float32,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        rows = self.gates * hidden_size
        self.weight_ih = self._drawn((rows, input_size), dtype)
        self.weight_hh = self._drawn((rows, hidden_size), dtype)
        self.bias_ih = self._drawn((rows,), dtype) if bias else None
        self.bias_hh = self._drawn((rows,), dtype) if bias else None

    def _drawn(self, shape: tuple[int, ...], dtype: DType) -> Parameter:
        return Parameter(init.kaiming_uniform(shape, self.hidden_size, dtype))

    def _inputs(self, x: Tensor) -> Tensor:
        """Return the contribution of the input to the gates: [batch, gates hidden]."""
        return ops.linear(x, self.weight_ih, self.bias_ih)

    def _recurrent(self, h: Tensor) -> Tensor:
        """Return the contribution of the state to the gates: [batch, gates hidden]."""
        return ops.linear(h, self.weight_hh, self.bias_hh)

    def _split(self, gates: Tensor) -> tuple[Tensor, ...]:
        return ops.split(gates, (self.hidden_size,) * self.gates, 1)

    def _zeros(self, x: Tensor) -> Tensor:
        zeros: Tensor = ops.zeros((x.shape[0], self.hidden_size), dtype=x.dtype)
        return zeros

    def describe(self) -> str:
        bias = "" if self.bias_ih is not None else ", bias=False"
        return f"{self.input_size}, {self.hidden_size}{bias}"


class LSTMCell(Cell):
    """A step of :class:`LSTM`: ``h, c = cell(x, (h, c))``.

    ``x`` is ``[batch, input]``, the states are ``[batch, hidden]``, zeros if left out.
    """

    gates = 4

    def __call__(
        self, x: Tensor, state: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        h, c = (self._zeros(x), self._zeros(x)) if state is None else state
        i, f, g, o = self._split(self._inputs(x) + self._recurrent(h))
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        return ops.sigmoid(o) * ops.tanh(c), c


class GRUCell(Cell):
    """A step of :class:`GRU`: ``h = cell(x, h)``.

    ``x`` is ``[batch, input]``, ``h`` ``[batch, hidden]``, zeros by default.
    """

    gates = 3

    def __call__(self, x: Tensor, h: Tensor | None = None) -> Tensor:
        h = self._zeros(x) if h is None else h
        r, z, n = self._split(self._inputs(x))
        hr, hz, hn = self._split(self._recurrent(h))
        z = ops.sigmoid(z + hz)
        n = ops.tanh(n + ops.sigmoid(r + hr) * hn)
        return (1.0 - z) * n + z * h


class RNNCell(Cell):
    """A step of :class:`RNN`, with the arguments and results of :class:`GRUCell`.

    ``nonlinearity`` is ``"tanh"`` or ``"relu"``.
    """

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        dtype: DType = float32,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"expected tanh or relu, got {nonlinearity!r}")
        super().__init__(input_size, hidden_size, bias, dtype)
        self.nonlinearity = nonlinearity

    def __call__(self, x: Tensor, h: Tensor | None = None) -> Tensor:
        h = self._zeros(x) if h is None else h
        total = self._inputs(x) + self._recurrent(h)
        return ops.tanh(total) if self.nonlinearity == "tanh" else ops.relu(total)
