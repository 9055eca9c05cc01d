"""A small convolutional net learns by plain gradient steps."""

import numpy as np

import burn
from burn import Tensor, nn, ops


class Net(nn.Module):
    """Images [N, 1, 8, 6] to logits [N, 3]."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.pool = nn.MaxPool2d(2)
        self.body = nn.Conv2d(8, 8, 3, groups=2, padding=1)
        self.group = nn.GroupNorm(2, 8)
        self.head = nn.Linear(8, 3)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.pool(ops.relu(self.norm(self.stem(x))))
        x = ops.gelu(self.group(self.body(x)))
        return self.head(nn.GlobalAvgPool()(x))


def images(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Bars that lie, stand or cross, with noise; and their classes, one-hot."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 0.3, (count, 1, 8, 6)).astype(np.float32)
    labels = rng.integers(0, 3, count)
    for image, label in zip(x, labels, strict=True):
        if label != 1:
            image[0, rng.integers(0, 8)] += 2
        if label != 0:
            image[0, :, rng.integers(0, 6)] += 2
    return burn.from_numpy(x), burn.from_numpy(np.eye(3, dtype=np.float32)[labels])


def test_a_small_net_learns() -> None:
    nn.init.seed(1)
    net = Net().to(burn.Autodiff(burn.Cpu()))
    losses = []
    for step in range(120):
        x, target = images(32, step)
        loss = -(ops.log_softmax(net(x)) * target).sum() / 32.0
        grads = loss.backward()
        for _, parameter in net.parameters():
            parameter.set(parameter.value.detach() - grads[parameter] * 0.2)
        losses.append(loss.item())
    assert np.mean(losses[-10:]) < 0.35 * np.mean(losses[:10])
    x, target = images(200, 999)
    found = net.valid()(x).numpy().argmax(1)
    assert (found == target.numpy().argmax(1)).mean() > 0.85
