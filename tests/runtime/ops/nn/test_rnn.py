"""Recurrent layers against ONNX Runtime over their attributes, and their gradients."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from tests.runtime.gradcheck import check_gradient
from tests.runtime.onnx_node import run_node as run_opset

run_node = partial(run_opset, opset=21)

RNG = np.random.default_rng(8)
TIME, BATCH, INPUT, HIDDEN = 5, 3, 4, 2
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
DIRECTIONS = ["forward", "reverse", "bidirectional"]


def weights(op: str, direction: str, **extra: bool) -> list[Any]:
    """Random inputs in ONNX's order, X to the initial states and peepholes."""
    d, n = (2 if direction == "bidirectional" else 1), GATES[op] * HIDDEN
    shapes: list[Any] = [(TIME, BATCH, INPUT), (d, n, INPUT), (d, n, HIDDEN)]
    shapes.append((d, 2 * n) if extra.get("bias", True) else None)
    results = [None if s is None else RNG.standard_normal(s) for s in shapes]
    results.append(np.array([3, 5, 1]) if extra.get("lengths") else None)
    state = (d, BATCH, HIDDEN)
    count = 2 if op == "LSTM" else 1
    states = extra.get("states", True)
    results += [RNG.standard_normal(state) if states else None for _ in range(count)]
    if op == "LSTM":
        peep = extra.get("peephole")
        results.append(RNG.standard_normal((d, 3 * HIDDEN)) if peep else None)
    return results


def ours(op: str, inputs: list[Any], **attrs: Any) -> Any:
    """The runtime's results for inputs in ONNX's order."""
    x, w, r, b, lengths, *rest = inputs
    order = [x, w, r, b, *rest[:2], lengths, *rest[2:]]
    if op != "LSTM":
        order = [x, w, r, b, rest[0], lengths]
    return getattr(ops, op.lower())(*order, **attrs)


def check(op: str, inputs: list[Any], attrs: dict[str, Any], **flags: bool) -> None:
    narrow = [
        i if i is None else i.astype(np.int32 if i.dtype.kind == "i" else np.float32)
        for i in inputs
    ]
    onnx = {**attrs, **{k: int(v) for k, v in flags.items()}}
    count = 3 if op == "LSTM" else 2
    expected = run_node(op, *narrow, outputs=count, hidden_size=HIDDEN, **onnx)
    tensors = [None if i is None else burn.tensor(i) for i in narrow]
    result = ours(op, tensors, hidden_size=HIDDEN, **attrs, **flags)
    for got, want in zip(result, expected, strict=True):
        assert got.dtype == burn.float32
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("lengths", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_directions_lengths_and_biases(
    op: str, direction: str, lengths: bool, bias: bool
) -> None:
    inputs = weights(op, direction, lengths=lengths, bias=bias, states=bias)
    check(op, inputs, {"direction": direction})


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("lengths", [False, True])
def test_peepholes_clip_and_coupled_gates(direction: str, lengths: bool) -> None:
    inputs = weights("LSTM", direction, lengths=lengths, peephole=True)
    check("LSTM", inputs, {"direction": direction})
    inputs = weights("LSTM", direction, lengths=lengths)
    check("LSTM", inputs, {"direction": direction, "clip": 0.4})
    inputs = weights("LSTM", direction, lengths=lengths)
    check("LSTM", inputs, {"direction": direction}, input_forget=True)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("before", [False, True])
def test_gru_reset(direction: str, before: bool) -> None:
    inputs = weights("GRU", direction, lengths=True)
    attrs = {"direction": direction, "clip": 0.7}
    check("GRU", inputs, attrs, linear_before_reset=before)


FUNCTIONS: list[tuple[str, list[float], list[float]]] = [
    ("Relu", [], []),
    ("Softsign", [], []),
    ("Softplus", [], []),
    ("LeakyRelu", [0.3], []),
    ("ThresholdedRelu", [0.2], []),
    ("Elu", [0.7], []),
    ("Affine", [0.6], [0.1]),
    ("ScaledTanh", [0.8], [1.3]),
    ("HardSigmoid", [0.3], [0.4]),
]


@pytest.mark.parametrize(("name", "alpha", "beta"), FUNCTIONS)
def test_activations(name: str, alpha: list[float], beta: list[float]) -> None:
    names = ["Sigmoid", name, "Tanh", "HardSigmoid", name, name]
    attrs: dict[str, Any] = {"activations": names}
    alphas = [*alpha, 0.25, *alpha, *alpha]
    betas = [*beta, 0.45, *beta, *beta]
    attrs |= {"activation_alpha": alphas, "activation_beta": betas}
    inputs = weights("LSTM", "bidirectional")
    check("LSTM", inputs, {"direction": "bidirectional", **attrs})
    check_gradient(
        lambda x: ours("LSTM", [x, *inputs[1:]], direction="bidirectional", **attrs)[0],
        inputs[0],
    )


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("direction", ["reverse", "bidirectional"])
def test_gradients(op: str, direction: str) -> None:
    inputs = weights(op, direction, lengths=True, peephole=True)
    lengths = inputs.pop(4)

    def run(*tensors: Any) -> Any:
        every = [*tensors[:4], lengths, *tensors[4:]]
        return ours(op, every, direction=direction)

    check_gradient(run, *inputs)


@pytest.mark.parametrize("op", GATES)
def test_batch_first(op: str) -> None:
    inputs = weights(op, "bidirectional", lengths=True)
    plain = ours(op, inputs, direction="bidirectional")
    turned = [
        i.swapaxes(0, 1) if i is not None and index in (0, 5, 6) else i
        for index, i in enumerate(inputs)
    ]
    actual = ours(op, turned, direction="bidirectional", layout=1)
    np.testing.assert_allclose(
        actual[0].numpy(), plain[0].numpy().transpose(2, 0, 1, 3)
    )
    for got, want in zip(actual[1:], plain[1:], strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy().swapaxes(0, 1))


def test_halves_are_computed_in_float32() -> None:
    inputs = weights("GRU", "forward")
    half = [None if i is None else i.astype(np.float16) for i in inputs]
    wide = [None if i is None else i.astype(np.float32) for i in half]
    actual, expected = ours("GRU", half)[0], ours("GRU", wide)[0]
    assert actual.dtype == burn.float16
    np.testing.assert_array_equal(actual.numpy(), expected.numpy().astype(np.float16))


def test_errors_say_what_was_expected() -> None:
    inputs = weights("LSTM", "forward")
    with pytest.raises(ValueError, match="'bidirectional', got 1"):
        ours("LSTM", inputs, direction="bidirectional")
    with pytest.raises(ValueError, match="'Swish'"):
        ours("LSTM", inputs, activations=["Sigmoid", "Swish", "Tanh"])
    with pytest.raises(ValueError, match="hidden_size 2, got 3"):
        ours("LSTM", inputs, hidden_size=3)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("op", GATES)
def test_a_sequence_without_steps_ends_in_its_initial_states(
    op: str, direction: str
) -> None:
    arrays = [None if a is None else np.float32(a) for a in weights(op, direction)]
    rest = [None if a is None else burn.tensor(a) for a in arrays[1:]]

    def call(x: Any) -> Any:
        return ours(op, [x, *rest], direction=direction)

    compiled = burn.compile(call)
    for time in (0, 2, 0, 0):
        x = burn.tensor(np.ones((time, BATCH, INPUT), np.float32))
        every, *last = call(x)
        for got, expected in zip(compiled(x), (every, *last), strict=True):
            np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-6)
        if time == 0:
            assert every.shape == (0, len(last[0].numpy()), BATCH, HIDDEN)
            for state, start in zip(last, arrays[5:], strict=False):
                np.testing.assert_array_equal(state.numpy(), start)
