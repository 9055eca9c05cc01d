"""Imports a model with an operator that ONNX does not have, and trains it.

``snake_operator.py`` declares the operator. Two networks that differ in their
activation alone learn a wave between -6 and 6; the one with the operator continues it
on both sides. Run it as ``python examples/operator/run.py``; it draws
``generated/operator.png`` with Matplotlib.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
from matplotlib.figure import Figure
from numpy.typing import NDArray
from onnx import numpy_helper

import burn
from burn import Autodiff, Cpu, loss, optim, train
from burn_import import ModelGen, Options

HERE = Path(__file__).parent
OUT = HERE / "generated"
WIDTH, STEPS = 48, 1500
NETWORK = """
<ir_version: 10, opset_import: ["": 20, "com.example": 1]>
network (float[batch, 1] x) => (float[batch, 1] y)
{
    h0 = Gemm(x, "first.weight", "first.bias")
    h1 = ACTIVATION(h0)
    y = Gemm(h1, "last.weight", "last.bias")
}
"""

Array = NDArray[np.float32]


def generate(activation: str, name: str) -> Any:
    """Return the class generated from a network with an activation."""
    rng = np.random.default_rng(0)
    model = onnx.parser.parse_model(NETWORK.replace("ACTIVATION", activation))
    for layer, rows, columns in (("first", 1, WIDTH), ("last", WIDTH, 1)):
        weight = 0.3 * rng.normal(size=(rows, columns))
        for key, value in (("weight", weight), ("bias", np.zeros(columns))):
            array = numpy_helper.from_array(value.astype(np.float32), f"{layer}.{key}")
            model.graph.initializer.append(array)
    path = OUT / f"{name.lower()}_network.onnx"
    onnx.save(model, path)
    generator = ModelGen().input(str(path)).out_dir(str(OUT))
    options = Options(class_name=name)
    generator.operators("snake_operator").options(options).run_from_script()
    return getattr(import_module(path.stem), name)


def fit(network: Any, x: Array, y: Array) -> Any:
    """Return the network after it learnt ``y`` of ``x``."""
    model = network.load(backend=Autodiff(Cpu()))
    opt = optim.AdamW(model, lr=1e-2, weight_decay=0.1)

    @train.step(model, opt, optim.cosine(opt, steps=STEPS))
    def step(x: burn.Tensor, y: burn.Tensor) -> burn.Tensor:
        return loss.mse_loss(model(x), y)

    for _ in range(STEPS):
        step(burn.tensor(x), burn.tensor(y))
    return model.valid()


def main() -> dict[str, float]:
    """Return the root mean square error of both beside what they learnt; draw them."""
    OUT.mkdir(exist_ok=True)
    sys.path[:0] = [str(HERE), str(OUT)]
    wide = np.linspace(-12, 12, 481, dtype=np.float32)[:, None]
    learnt = np.abs(wide[:, 0]) < 6
    truth: Array = (np.sin(wide) + wide / 6).astype(np.float32)
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.axvspan(-6, 6, color="#e2e8f0", label="seen in training")
    axes.plot(wide, truth, color="black", linewidth=0.8, label="sin x + x / 6")
    errors = {}
    for activation, name in (("Relu", "Relu"), ("com.example.Snake", "Snake")):
        model = fit(generate(activation, name), wide[learnt], truth[learnt])
        drawn = model(burn.tensor(wide)).numpy()
        outside = (drawn - truth)[~learnt]
        errors[name] = float(np.sqrt((outside**2).mean()))
        print(f"{name:<6} error outside of what was seen: {errors[name]:.2f}")
        axes.plot(wide, drawn, linewidth=1.8, label=name)
    axes.set(ylim=(-5, 5), xlim=(-12, 12))
    axes.legend(loc="lower right", frameon=False)
    figure.savefig(OUT / "operator.png", dpi=120)
    return errors


if __name__ == "__main__":
    main()
