"""A file of weights as a skeleton."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from burn.dtypes import is_float
from burn.record.errors import shown
from burn_import.emit.module import Source
from burn_import.foreign import EXPORT
from burn_import.options import Hints, Options
from burn_import.skeleton.source import skeleton
from burn_import.source.names import camel
from burn_import.sources import kind_of
from burn_import.transform import WrongOptions
from burn_import.weights import arrays_of
from burn_ir import UnsupportedModel
from burn_ir.errors import Problem

if TYPE_CHECKING:
    from burn_import.pytorch import Checkpoint

#: What a training loop keeps beside the weights.
_TRAINING = re.compile(r"(optim|(lr_)?sched|scaler|ema_|amp|rng|callback)\w*")


def skeleton_of(checkpoint: Checkpoint, options: Options) -> Source:
    """The modules that the weights of ``checkpoint`` are of.

    Raises:
        WrongOptions: an option is for models with a program.
        UnsupportedModel: the file holds no tensors, or the state of a training too.
    """
    _check(options)
    _check_checkpoint(checkpoint)
    arrays = [
        (
            name,
            (
                array.astype(options.dtype)
                if options.dtype and is_float(array.dtype)
                else array
            ),
        )
        for name, array in arrays_of(checkpoint)
    ]
    name = camel(options.class_name or "Model")
    return skeleton(arrays, name, options.weights, _notes(checkpoint, options.hints))


def _notes(checkpoint: Checkpoint, hints: Hints) -> list[str]:
    """What could be done to have the program too, or why there is none."""
    from burn_import.recipes.reader import config_of
    from burn_import.recipes.steps import steps_of

    notes = []
    kind = config_of(checkpoint.path, hints).kind
    if kind:
        notes.append(f"No architecture is known that fits them and is called {kind}.")
    if steps_of(checkpoint):
        notes.append("--activation NAME makes an nn.Sequential of it, to be called.")
    return notes


def _check(options: Options) -> None:
    """Return if no option asks for something that weights alone do not have."""
    given = {
        "--flat": options.flat,
        "--shape": options.shapes,
        "--inputs": options.inputs,
        "--outputs": options.outputs,
        "--simplify": options.passes is not None,
    }
    problems = [
        Problem(f"{flag}: expected a model with a program, got weights alone")
        for flag, value in given.items()
        if value
    ]
    if problems:
        raise WrongOptions(problems)


def _check_checkpoint(checkpoint: Checkpoint) -> None:
    """Return if the file holds the weights of one model."""
    if not checkpoint:
        kind = kind_of(checkpoint.path) or "file of weights"
        raise UnsupportedModel(
            f"{checkpoint.path.name}: this is a {kind} that holds no tensors. "
            f"{EXPORT}"
        )
    tops = dict.fromkeys(key.partition(".")[0] for key in checkpoint)
    training = [top for top in tops if _TRAINING.fullmatch(top)]
    others = [top for top in tops if top not in training]
    if training and others:
        names = " or ".join(f"--top-level-key {shown(top)[1:-1]}" for top in others[:4])
        raise UnsupportedModel(
            f"{checkpoint.path.name}: expected the weights of a model, got a "
            f"checkpoint that holds {', '.join(map(shown, training))} too; {names} "
            "takes the weights"
        )
