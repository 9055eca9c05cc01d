"""Plain ``nn.Sequential`` networks, from numbered weights and user hints."""

from dataclasses import replace
from itertools import pairwise
from math import prod

from burn_import.frontends.checkpoints import Checkpoint
from burn_import.frontends.recipes.graph_writer import BATCH, RecipeWriter
from burn_import.frontends.recipes.weights import BATCH_NORMS, Step, Weights, steps_of
from burn_import.options import Hints
from burn_import.provenance.path_segments import ROOT
from burn_ir import RawModel, UnsupportedModel
from burn_ir.dim import symbol
from burn_ir.errors import Problem

_AXES = (("length",), ("height", "width"), ("depth", "height", "width"))
_POOLS = {"max": "MaxPool", "average": "AveragePool"}
EPS = 1e-5


def sequential(checkpoint: Checkpoint, hints: Hints) -> RawModel:
    """Return the model of numbered layers, with the activation from ``hints``.

    Raises:
        UnsupportedModel: the weights are of something else, or required hints are
            missing; all missing ones are listed.
    """
    steps = steps_of(checkpoint)
    if not steps:
        raise UnsupportedModel(
            f"{checkpoint.path.name}: expected for --activation weights of numbered "
            "layers in a row (0.weight, 2.weight; features.0.weight, "
            "classifier.1.weight), got others"
        )
    at_root = steps[0].path.isdigit()
    tensors = dict(checkpoint.items())
    if at_root:
        tensors = {f"{ROOT}.{key}": tensor for key, tensor in tensors.items()}
    run = _Run(RecipeWriter(Weights(tensors)), hints, f"{ROOT}." if at_root else "")
    return run.model(steps)


class _Run:
    """The construction of a model, one step after another."""

    def __init__(self, w: RecipeWriter, hints: Hints, prefix: str) -> None:
        self.w, self.hints, self.prefix = w, hints, prefix
        self.problems: list[Problem] = []
        self.rank = 0
        self.channels = 0

    def model(self, steps: list[Step]) -> RawModel:
        """Return the whole model."""
        self.check_hints(steps)
        x = self.begin(steps[0])
        for before, step in pairwise([steps[0], *steps]):
            if step is not steps[0]:
                x = self.between(before, step, x)
            x = self.layer(step, x)
        if self.problems:
            raise UnsupportedModel(self.problems)
        self.w.note(*self.notes(steps))
        return replace(self.w.model(x), inside=self.prefix.rstrip("."))

    def check_hints(self, steps: list[Step]) -> None:
        """Report hints about convolutions if there are none."""
        if any(step.is_conv for step in steps):
            return
        hint_values = {"--padding": self.hints.padding, "--pool": self.hints.pool}
        self.problems += [
            Problem(f"{flag}: expected weights with convolutions, got none")
            for flag, value in hint_values.items()
            if value is not None
        ]

    def begin(self, step: Step) -> str:
        """Add the input: [batch, features], or [batch, channels, ...]."""
        input_size = step.layer.args[0]
        if not step.is_conv:
            return self.w.input("x", "float32", BATCH, input_size)
        self.rank = len(self.w.shape(f"{self.prefix}{step.path}.weight")) - 2
        axes = map(symbol, _AXES[self.rank - 1])
        return self.w.input("x", "float32", BATCH, input_size, *axes)

    def layer(self, step: Step, x: str) -> str:
        """Return the output of a layer."""
        w, name, layer = self.w, f"{self.prefix}{step.path}", step.layer
        if layer.name == "Linear":
            return w.linear(name, x)
        if layer.name == "LayerNorm":
            return w.layer_norm(name, x, EPS)
        if layer.name in BATCH_NORMS:
            return w.batch_norm(name, x, EPS)
        if layer.name == "PReLU":
            slope = w.weight(f"{name}.weight")
            if self.rank:
                slope = w.op("Unsqueeze", slope, list(range(1, self.rank + 1)))
            return w.op("PRelu", x, slope)
        self.channels = layer.args[1]
        kernel = w.shape(f"{name}.weight")[2:]
        if prod(kernel) > 1 and self.hints.padding is None:
            self.miss(step, "its padding", "--padding same or --padding valid")
        padding = 0 if self.hints.padding == "valid" else None
        return w.conv(name, x, padding=padding, groups=layer.options.get("groups", 1))

    def between(self, before: Step, step: Step, x: str) -> str:
        """Add the activation, pool and flattening between two layers."""
        boundary = step.first
        gap = step.gap + 1 if boundary else step.gap
        if gap and before.layer.name != "PReLU":
            x = self.activation(x)
            gap -= 1
        ends = self.rank > 0 and step.layer.name == "Linear"
        if self.rank and (gap > 1 or (gap and not ends) or boundary):
            x = self.pool(step, x)
        return self.pooled_features(step, x) if ends else x

    def activation(self, x: str) -> str:
        name = self.hints.activation or "none"
        return x if name == "none" else self.w.activation(name, x)

    def pool(self, step: Step, x: str) -> str:
        """Add the pool that a skipped index stands for."""
        if self.hints.pool is None:
            self.miss(step, "the pool before it", "--pool max, average or none")
        if self.hints.pool not in _POOLS:
            return x
        window = (2,) * self.rank
        kind = _POOLS[self.hints.pool]
        return self.w.op(kind, x, kernel_shape=window, strides=window)

    def pooled_features(self, step: Step, x: str) -> str:
        """Pool and flatten to the features that the first linear layer reads."""
        count = step.layer.args[0] // self.channels
        side = round(count ** (1 / self.rank))
        if side**self.rank != count:
            self.problems.append(
                Problem(
                    f"{step.path}: expected the elements of a square of "
                    f"{self.channels} channels, got {step.layer.args[0]}"
                )
            )
        self.rank = 0
        if side == 1:
            x = self.w.op("GlobalAveragePool", x)
        else:
            size = (side,) * len(self.w.inputs["x"].dims[2:])
            x = self.w.op("AdaptiveAvgPool", x, output_size=size)
        return self.w.op("Flatten", x, axis=1)

    def miss(self, step: Step, noun: str, option: str) -> None:
        """Report a required option that weights cannot replace."""
        message = f"{step.path}: weights do not determine {noun}; pass {option}"
        self.problems.append(Problem(message))

    def notes(self, steps: list[Step]) -> list[str]:
        """Return notes on the options of the caller, and on assumed defaults."""
        sentences = [
            f"Weights hold no activations: --activation {self.hints.activation} stands "
            "where a number is left out between layers, other numbers left out are of "
            "dropouts, and nothing follows the last layer."
        ]
        if any(step.is_conv for step in steps):
            sentences.append("Strides are 1.")
        if self.hints.padding is not None:
            sentences.append(f"Convolutions have --padding {self.hints.padding}.")
        if self.hints.pool in _POOLS:
            sentences.append(
                f"A second number left out between convolutions, and the end of their "
                f"list, is a --pool {self.hints.pool} of windows of 2."
            )
        if any(step.is_conv for step in steps) and steps[-1].layer.name == "Linear":
            sentences.append(
                "What linear layers read is a mean of as many even windows."
            )
        return sentences
