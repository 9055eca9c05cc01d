"""Steps of bf16 and fp16 against references that cast by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, Tensor, dtypes, loss, nn, ops, optim, train

RNG = np.random.default_rng(3)
X = RNG.standard_normal((6, 8, 1, 6, 6), np.float32)
Y = RNG.integers(0, 3, (6, 8))
DTYPES = {"bf16": dtypes.bfloat16, "fp16": dtypes.float16}


class Net(nn.Module):
    """[N, 1, 6, 6] to three classes: a convolution, norms, a branch and a product."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.first = nn.Linear(64, 16)
        self.second = nn.LayerNorm(16)
        self.head = nn.Linear(16, 3)

    def __call__(self, x: Tensor) -> Tensor:
        x = ops.flatten(ops.relu(self.norm(self.conv(x))), 1)
        x = ops.gelu(self.second(self.first(x)))
        return self.head(x + ops.softmax(x, axis=-1) @ np.eye(16, dtype=np.float32))


def network() -> Net:
    nn.init.seed(11)
    return Net().to(Autodiff(Cpu()))


def made(precision: Any, compiled: bool, **options: Any) -> train.Step[..., Any]:
    model = network()
    opt = optim.AdamW(model, lr=0.02, clip_norm=1.0)

    @train.step(model, opt, precision=precision, compiled=compiled, **options)
    def step(x: Tensor, y: Tensor) -> train.Classified:
        logits = model(x)
        return train.Classified(loss.cross_entropy(logits, y), logits, y)

    return step


def batch(number: int) -> tuple[Tensor, Tensor]:
    return burn.tensor(X[number % 6]), burn.tensor(Y[number % 6])


def weights(step: Any) -> dict[str, Any]:
    return {k: v.numpy().copy() for k, v in step.model.state_dict().items()}


class Cast(nn.Module):
    """A linear layer whose operands are cast by hand."""

    def __init__(self, dtype: Any) -> None:
        super().__init__()
        self.dtype = dtype
        self.linear = nn.Linear(5, 3)

    def __call__(self, x: Tensor) -> Tensor:
        if self.dtype is None:
            return self.linear(x)
        x, weight, bias = (
            ops.cast(value, dtype=self.dtype)
            for value in (x, self.linear.weight, self.linear.bias)
        )
        return ops.cast(ops.linear(x, weight, bias), dtype=dtypes.float32)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_gradients_are_those_of_casts_by_hand(precision: nn.Precision) -> None:
    x = burn.tensor(RNG.standard_normal((7, 5), np.float32))
    gradients = []
    for dtype in (None, DTYPES[precision]):
        nn.init.seed(1)
        model = Cast(dtype).to(Autodiff(Cpu()))
        with nn.autocast(precision if dtype is None else "float32"):
            y = model(x)
            value = ops.mean(y * y)
        assert value.dtype == dtypes.float32
        found = value.backward().by_name(model)
        gradients.append({path: grad.numpy() for path, grad in found.items()})
    for path, expected in gradients[1].items():
        assert gradients[0][path].dtype == np.float32
        np.testing.assert_array_equal(gradients[0][path], expected)
    assert gradients[0]["linear.weight"].any()


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_plans_train_as_eager_steps(precision: nn.Precision, accumulate: int) -> None:
    eager, planned = (
        made(precision, compiled, accumulate=accumulate) for compiled in (False, True)
    )
    for number in range(8):
        expected, actual = eager(*batch(number)), planned(*batch(number))
        assert actual.loss.dtype == actual.logits.dtype == dtypes.float32
        np.testing.assert_allclose(actual.loss.numpy(), expected.loss.numpy(), 5e-3)
    assert not planned.notes
    for path, value in weights(planned).items():
        assert value.dtype == np.float32
        np.testing.assert_allclose(value, weights(eager)[path], rtol=0, atol=5e-3)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_losses_are_near_those_of_float32(precision: nn.Precision) -> None:
    exact, lower = made("float32", True), made(precision, True)
    losses = np.array(
        [[float(s(*batch(n)).loss) for s in (exact, lower)] for n in range(24)]
    )
    assert losses[-6:].mean() < losses[:6].mean() / 2
    np.testing.assert_allclose(losses[:, 1], losses[:, 0], atol=0.05)
    assert (losses[:, 1] != losses[:, 0]).any()
    values = [float(s.evaluate(*batch(0)).loss) for s in (exact, lower)]
    assert values[0] != values[1]
    assert abs(values[0] - values[1]) < 0.05


def reference(scales: list[float], interval: int) -> tuple[list[float], Any]:
    """SGD of float16 products with dynamic loss scaling, written in NumPy."""
    scale, growth, weight = scales[0], 0, np.full((3, 4), 0.5, np.float32)
    history = []
    for number in range(12):
        x = overflowing(number).astype(np.float16)
        out = x.astype(np.float32) @ weight.astype(np.float16).astype(np.float32).T
        # The loss is the mean of the products: its gradient is the same for each.
        upper = np.full(out.shape, scale / out.size, np.float32).astype(np.float16)
        with np.errstate(over="ignore"):
            product = upper.astype(np.float32).T @ x.astype(np.float32)
            grad = product.astype(np.float16).astype(np.float32) / scale
        if np.isfinite(grad).all():
            weight, growth = weight - np.float32(0.5) * grad, growth + 1
            if growth == interval:
                scale, growth = scale * 2, 0
        else:
            scale, growth = scale / 2, 0
        history.append(scale)
    return history, weight


def overflowing(number: int) -> Any:
    """[2, 4] whose gradient overflows where the scale is large."""
    size = 64.0 if number in (0, 1, 6) else 1.0
    return np.full((2, 4), size, np.float32) * np.array([1, 2, -1, 0.5], np.float32)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_overflow_skips_the_step_and_halves_the_scale(
    compiled: bool, accumulate: int
) -> None:
    model = nn.Linear(4, 3, bias=False)
    model.weight.set(burn.tensor(np.full((3, 4), 0.5, np.float32)))
    model.to(Autodiff(Cpu()))
    opt = optim.SGD(model, lr=0.5)
    scaler = optim.GradScaler(model, init_scale=4096.0, growth_interval=3)
    schedule = optim.constant(opt)

    @train.step(
        *(model, opt, schedule),
        precision="fp16",
        scaler=scaler,
        compiled=compiled,
        accumulate=accumulate,
    )
    def step(x: Tensor) -> Tensor:
        return ops.mean(model(x))

    history = []
    for number in range(12):
        before = model.weight.numpy().copy()
        count, scale = float(opt.count), scaler.loss_scale
        for _ in range(accumulate):
            step(burn.tensor(overflowing(number)))
        history.append(scaler.loss_scale)
        if history[-1] < scale:
            np.testing.assert_array_equal(model.weight.numpy(), before)
            assert float(opt.count) == count
    expected, weight = reference([4096.0], 3)
    assert history == expected
    assert min(expected) < 4096.0 < max(np.divide(expected[1:], expected[:-1])) * 4096.0
    np.testing.assert_allclose(model.weight.numpy(), weight, rtol=1e-6)


class Crossed(nn.Module):
    """Two layers that are made in another order than they are called in."""

    def __init__(self) -> None:
        self.last = nn.Linear(4, 4)
        self.first = nn.Linear(4, 4)

    def __call__(self, x: Any) -> Any:
        return self.last(ops.relu(self.first(x)))


def test_a_step_stays_compiled_when_gradients_overflow_after_an_update() -> None:
    model = Crossed().to(Autodiff(Cpu()))

    @train.step(model, optim.AdamW(model, lr=1e-2), precision="fp16")
    def step(x: Tensor) -> Tensor:
        return ops.mean(model(x) ** 2)

    assert step.scaler is not None
    scales = []
    for size in (1.0, 1.0, 1e4, 1.0, 1e4):
        step(burn.tensor(np.full((3, 4), size, np.float32)))
        scales.append(step.scaler.loss_scale)
    assert scales[1] == 2.0**16 > scales[2] == scales[3] > scales[4]
    assert not step.notes


def test_checkpoints_have_the_scale(tmp_path: Path) -> None:
    first = made("fp16", True)
    assert first.scaler is not None
    first.scaler.load_state_dict(
        {"scale": np.float32(2.0**40), "growth": np.float32(0)}
    )
    for number in range(3):
        first(*batch(number))
    path = tmp_path / "step.safetensors"
    first.save(path)
    again = made("fp16", True)
    again.load(path)
    assert again.scaler is not None
    assert again.scaler.loss_scale == first.scaler.loss_scale == 2.0**37
    with pytest.raises(ValueError, match="expected the state of"):
        made("bf16", True).load(path)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="expected a precision of 'float32', 'bf16'"):
        made("int4", False)
    with pytest.raises(ValueError, match="init_scale > 0"):
        optim.GradScaler(network(), init_scale=0.0)
    with pytest.raises(ValueError, match="backoff_factor in"):
        optim.GradScaler(network(), backoff_factor=1.0)
