"""Steps of training: one plan, accumulation, evaluation and checkpoints."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, Tensor, loss, nn, ops, optim, train
from burn.plan import profile
from burn.record import open_record, write_record

RNG = np.random.default_rng(0)
X = RNG.standard_normal((6, 8, 5), np.float32)
Y = RNG.integers(0, 3, (6, 8))


class Net(nn.Module):
    """[N, 5] to three classes, with statistics and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(5, 7, bias=False)
        self.norm = nn.BatchNorm1d(7)
        self.dropout = nn.Dropout(0.3)
        self.head = nn.Linear(7, 3)

    def __call__(self, x: Tensor) -> Tensor:
        return self.head(self.dropout(ops.relu(self.norm(self.first(x)))))


def made(compiled: bool = True, accumulate: int = 1) -> train.Step[..., Any]:
    nn.init.seed(7)
    model = Net().to(Autodiff(Cpu()))
    opt = optim.AdamW(model, lr=0.05, clip_norm=1.0)

    @train.step(
        model,
        opt,
        optim.cosine(opt, 20, warmup=2),
        accumulate=accumulate,
        ema=optim.EMA(model, 0.9),
        compiled=compiled,
    )
    def step(x: Tensor, y: Tensor) -> train.Classified:
        logits = model(x)
        return train.Classified(loss.cross_entropy(logits, y), logits, y)

    return step


def batch(number: int) -> tuple[Tensor, Tensor]:
    return burn.tensor(X[number % 6]), burn.tensor(Y[number % 6])


def weights(step: train.Step[..., Any]) -> dict[str, Any]:
    state = step.model.state_dict()
    return {name: value.numpy().copy() for name, value in state.items()}


def whole_state(step: Any) -> dict[str, Any]:
    parts = {"model": step.model, "optimizer": step.optimizer, "ema": step.ema}
    return {
        f"{name}.{key}": value.numpy().copy()
        for name, part in parts.items()
        for key, value in part.state_dict().items()
    }


@pytest.mark.parametrize("accumulate", [1, 3])
def test_plans_train_as_eager_steps(accumulate: int) -> None:
    eager, planned = made(False, accumulate), made(True, accumulate)
    for number in range(12):
        expected, actual = eager(*batch(number)), planned(*batch(number))
        assert type(actual) is train.Classified
        np.testing.assert_allclose(actual.loss.numpy(), expected.loss.numpy(), 1e-4)
    assert float(planned.optimizer.count) == 12 // accumulate  # type: ignore[union-attr]
    assert not planned.notes
    used = (
        [planned._train] if accumulate == 1 else [planned._accumulate, planned._apply]
    )
    assert [[p.count for p in plan._plans.values()] for plan in used] == [[1]] * len(
        used
    )
    for name, value in weights(eager).items():
        np.testing.assert_allclose(weights(planned)[name], value, 1e-3, 1e-4)


def test_accumulated_gradients_are_those_of_the_whole_batch() -> None:
    nn.init.seed(1)
    models = [nn.Linear(5, 3).to(Autodiff(Cpu())) for _ in "ab"]
    models[1].load_state_dict(models[0].state_dict())
    opts = [optim.SGD(model, lr=0.5) for model in models]

    def descent(index: int) -> Any:
        return lambda x, y: loss.cross_entropy(models[index](x), y)

    whole = train.step(models[0], opts[0])(descent(0))
    parts = train.step(models[1], opts[1], accumulate=2)(descent(1))
    for _ in range(3):
        whole(burn.tensor(X[0]), burn.tensor(Y[0]))
        parts(burn.tensor(X[0, :4]), burn.tensor(Y[0, :4]))
        parts(burn.tensor(X[0, 4:]), burn.tensor(Y[0, 4:]))
    np.testing.assert_allclose(models[0].weight.numpy(), models[1].weight.numpy(), 1e-5)


def test_only_the_last_accumulated_batch_changes_weights() -> None:
    step, calls = made(compiled=False, accumulate=3), []
    change = step.optimizer.step
    step.optimizer.step = lambda grads: (calls.append(1), change(grads))  # type: ignore
    for number in range(7):
        step(*batch(number))
    assert len(calls) == 2
    assert step.position == 1


def test_a_window_with_infinite_gradients_does_not_spoil_the_next() -> None:
    model = nn.Linear(2, 1, bias=False).to(Autodiff(Cpu()))
    model.load_state_dict({"weight": np.ones((1, 2), np.float32)})
    opt = optim.SGD(model, lr=1.0, clip_value=1.0)
    step = train.step(model, opt, accumulate=2)(lambda x: model(x).sum())
    for value in (np.inf, 1.0, 0.5, 0.5):
        step(burn.tensor(np.full((1, 2), value, np.float32)))
    np.testing.assert_array_equal(model.weight.numpy(), [[-0.5, -0.5]])


def test_parameters_frozen_between_batches_stay() -> None:
    step = made(accumulate=2)
    for number in range(5):
        step(*batch(number))
    step.model.freeze("first")
    before = weights(step)
    step(*batch(5))
    np.testing.assert_array_equal(weights(step)["first.weight"], before["first.weight"])
    assert np.abs(weights(step)["head.weight"] - before["head.weight"]).max() > 0


@pytest.mark.parametrize("compiled", [False, True])
def test_evaluation_is_inference_and_changes_nothing(compiled: bool) -> None:
    step = made(compiled)
    for number in range(3):
        step(*batch(number))
    before = weights(step)
    output = step.evaluate(*batch(4))
    assert output.logits.backend is Cpu()
    expected = step.model.valid()(burn.tensor(X[4])).numpy()  # type: ignore[operator]
    np.testing.assert_allclose(output.logits.numpy(), expected, 1e-5, 1e-6)
    for name, value in before.items():
        np.testing.assert_array_equal(weights(step)[name], value)
    with nn.inference():
        x = burn.tensor(np.ones((4, 5), np.float32))
        np.testing.assert_allclose(
            step.model(x).numpy(),  # type: ignore[operator]
            step.model.valid()(x).numpy(),  # type: ignore[operator]
            1e-6,
        )


@pytest.mark.parametrize(("accumulate", "pause"), [(1, 12), (4, 6)])
def test_a_resumed_run_has_the_same_bits(
    tmp_path: Path, accumulate: int, pause: int
) -> None:
    whole, first, second = (made(accumulate=accumulate) for _ in range(3))
    for number in range(24):
        whole(*batch(number))
    for number in range(pause):
        first(*batch(number))
    first.save(tmp_path / "checkpoint.safetensors")
    for number in range(3):  # what is loaded replaces this
        second(*batch(number))
    second.load(tmp_path / "checkpoint.safetensors")
    for number in range(pause, 24):
        second(*batch(number))
    for name, value in weights(whole).items():
        np.testing.assert_array_equal(weights(second)[name], value, err_msg=name)
    averages = (each.ema.state_dict() for each in (whole, second))  # type: ignore[union-attr]
    for one, other in zip(*(each.values() for each in averages), strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    assert whole.schedule.lr == second.schedule.lr  # type: ignore[union-attr]


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    step = made()
    step(*batch(0))
    step.save(tmp_path / "a.safetensors")
    model = nn.Linear(2, 2).to(Autodiff(Cpu()))
    other = train.step(model, optim.SGD(model))(lambda x: model(x).mean())
    with pytest.raises(
        ValueError, match=r"expected the state of \['model', 'optimizer'"
    ):
        other.load(tmp_path / "a.safetensors")


@pytest.mark.parametrize(
    ("key", "array"),
    [
        ("ema.head.bias", np.zeros(4, np.float32)),
        ("optimizer.lr.0", np.zeros((), np.float32)),
        ("model.norm.running_var", np.zeros((7, 1), np.float32)),
        ("schedule.more", np.zeros(2, np.float32)),
        ("accumulated.else", np.zeros(2, np.float32)),
    ],
)
def test_a_checkpoint_that_does_not_fit_sets_nothing(
    tmp_path: Path, key: str, array: Any
) -> None:
    step, path = made(accumulate=2), tmp_path / "a.safetensors"
    for number in range(3):
        step(*batch(number))
    step.save(path)
    wrong = {name: np.array(value) for name, value in open_record(path).items()}
    write_record(path, (wrong | {key: array}).items(), {"position": "1"})
    step(*batch(3))
    before = whole_state(step)
    with pytest.raises(ValueError, match="a.safetensors: "):
        step.load(path)
    for name, value in whole_state(step).items():
        np.testing.assert_array_equal(value, before[name], err_msg=name)


def test_frozen_parameters_are_seen_by_later_steps() -> None:
    step = made()
    step(*batch(0))
    step.model.freeze("first")
    before = weights(step)
    step(*batch(1))
    after = weights(step)
    np.testing.assert_array_equal(after["first.weight"], before["first.weight"])
    assert np.abs(after["head.weight"] - before["head.weight"]).max() > 0
    step.model.unfreeze()
    step(*batch(2))
    assert np.abs(weights(step)["first.weight"] - before["first.weight"]).max() > 0


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("is_moved", [False, True])
def test_a_layer_replaced_after_the_optimizer_is_refused(
    accumulate: int, is_moved: bool
) -> None:
    step = made(accumulate=accumulate)
    for number in range(2):
        step(*batch(number))
    model: Any = step.model
    model.head = nn.Linear(7, 3)
    if is_moved:
        model.to(Autodiff(Cpu()))
    with pytest.raises(ValueError, match=r"^head\.weight, head\.bias: .* replaced"):
        for number in range(2):
            step(*batch(number))


def test_an_optimizer_may_have_parameters_of_other_modules() -> None:
    model, scale = (nn.Linear(5, 1).to(Autodiff(Cpu())) for _ in range(2))
    both = {**dict(model.parameters()), "scale": scale.weight}
    step = train.step(model, optim.SGD(both, lr=0.1))(
        lambda x: (model(x) * scale.weight).sum()
    )
    before = scale.weight.numpy().copy()
    step(burn.tensor(X[0]))
    assert np.any(scale.weight.numpy() != before)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_loss_without_parameters_is_refused(compiled: bool) -> None:
    model = nn.Linear(2, 2).to(Autodiff(Cpu()))
    decorate = train.step(model, optim.SGD(model), compiled=compiled)
    x = burn.tensor([[1.0, 2.0]])
    with pytest.raises(TypeError, match=r"on Cpu\(\), which depends on no parameter"):
        decorate(lambda x: x.mean())(x)
    with pytest.raises(ValueError, match="the loss depends on no parameter"):
        decorate(lambda x: model(x).detach().mean())(x)


def test_a_step_returns_a_loss() -> None:
    model = nn.Linear(2, 2).to(Autodiff(Cpu()))
    step = train.step(model, optim.SGD(model))(lambda x: (model(x), x))
    with pytest.raises(TypeError, match="or dict with 'loss' .* got tuple"):
        step(burn.tensor([[1.0, 2.0]]))
    with pytest.raises(ValueError, match="expected accumulate >= 1, got 0"):
        train.step(model, optim.SGD(model), accumulate=0)(lambda x: model(x).mean())


def test_an_optimizer_that_evaluates_the_loss_is_refused() -> None:
    model = made().model
    with pytest.raises(TypeError, match=r"got LBFGS; .* call its step\(closure\)"):
        train.step(model, optim.LBFGS(model))(lambda x: x)  # type: ignore[arg-type]


@pytest.mark.parametrize("accumulate", [1, 2])
def test_profile_changes_nothing(accumulate: int) -> None:
    step = made(accumulate=accumulate)
    for number in range(3):
        step(*batch(number))
    before = whole_state(step)
    profile = step.profile(*batch(3))
    assert any("linear" in "".join(row.primitives) for row in profile.rows)
    after = whole_state(step)
    assert before.keys() == after.keys()
    for key, value in before.items():
        np.testing.assert_array_equal(after[key], value, err_msg=key)
    with pytest.raises(ValueError, match="expected a compiled step"):
        made(compiled=False).profile(*batch(0))


def test_a_step_of_many_lengths_says_so() -> None:
    net = nn.Linear(3, 2).to(Autodiff(Cpu()))

    @train.step(net, optim.SGD(net, lr=0.1))
    def sized_step(x: Tensor) -> Tensor:
        return ops.mean(net(x))

    def call(length: int) -> None:
        sized_step(burn.from_numpy(np.ones((length, 3), np.float32)))

    for length in range(1, 9):
        call(length)
    assert not sized_step.notes
    call(9)
    assert "sized_step was recorded for 9 combinations" in sized_step.notes[0]
    for length in range(10, 16):
        call(length)
    with pytest.warns(RuntimeWarning, match="sized_step was recorded for 16"):
        call(16)
    call(17)  # once


def test_profile_runs_each_plan_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both plans copy what the other has set, in the first run of a block alone."""
    monkeypatch.setattr(profile, "_ENOUGH", 0)
    runs: list[str] = []
    profiler: Any = SimpleNamespace(
        start_run=lambda: None,
        forget_times=runs.clear,
        profile=lambda totals: SimpleNamespace(rows=totals),
    )
    profile.profile_calls(
        profiler, lambda: runs.append("plain"), lambda: runs.append("timed"), list
    )
    assert runs == ["plain"] * profile._BLOCK + ["timed"] * profile._BLOCK
