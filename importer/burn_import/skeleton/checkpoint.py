"""Conversion of a file of weights to a skeleton."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from burn.dtypes import is_float
from burn.record.errors import shown
from burn_import.codegen.module.module import Source
from burn_import.file_kinds import described
from burn_import.foreign import EXPORT
from burn_import.options import Options
from burn_import.skeleton.source import skeleton
from burn_import.tracing.identifiers import camel
from burn_import.transform.option_checks import OF_PROGRAMS, refuse_options
from burn_import.weights import arrays_of
from burn_ir import UnsupportedModel

if TYPE_CHECKING:
    from burn_import.frontends.checkpoints import Checkpoint

#: Entries of training loops beside the weights.
_TRAINING = re.compile(r"(optim|(lr_)?sched|scaler|ema_|amp|rng|callback)\w*")
#: Learning-rate keys of optimizers, and the maximum number of names in a message.
_GROUPS, _MOST = "param_groups.", 3


def skeleton_of(checkpoint: Checkpoint, options: Options) -> Source:
    """Return the modules that own the weights of ``checkpoint``.

    Raises:
        WrongOptions: an option is for models with a program.
        UnsupportedModel: the file has no tensors, or also holds training state.
    """
    refuse_options(options, OF_PROGRAMS, "a model with a program", "weights alone")
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
    return skeleton(arrays, name, options.weights, _notes(checkpoint))


def _notes(checkpoint: Checkpoint) -> list[str]:
    """Return notes for the report: other ways to import, skipped entries."""
    from burn_import.frontends.recipes.weights import steps_of

    notes = list(checkpoint.notes)
    if steps_of(checkpoint):
        notes.append("--activation NAME makes an nn.Sequential of it, to be called.")
    skipped = _skipped_entries(checkpoint)
    if skipped:
        notes.append(f"Left out of what the file holds: {skipped}.")
    return notes


def _skipped_entries(checkpoint: Checkpoint) -> str:
    """Return the entries that are no weights, with reasons."""
    listed = [f"{shown(name)} is {what}" for name, what in checkpoint.skipped.items()]
    more = f" and {len(listed) - _MOST} more" if len(listed) > _MOST else ""
    return ", ".join(listed[:_MOST]) + more


def _check_checkpoint(checkpoint: Checkpoint) -> None:
    """Check that the file holds the weights of one model."""
    if not checkpoint:
        kind = described(checkpoint.path) or "file of weights"
        skipped = _skipped_entries(checkpoint)
        raise UnsupportedModel(
            f"{checkpoint.path.name}: this is a {kind} that holds no tensors"
            f"{f' that can be read: {skipped}' if skipped else ''}. {EXPORT}"
        )
    tops = dict.fromkeys(key.partition(".")[0] for key in checkpoint)
    rates = any(name.startswith(_GROUPS) for name in checkpoint.scalars)
    if set(tops) <= {"state"} and rates:
        raise UnsupportedModel(
            f"{checkpoint.path.name}: expected the weights of a model, "
            "got the state of an optimizer"
        )
    training = [top for top in tops if _TRAINING.fullmatch(top)]
    others = [top for top in tops if top not in training]
    if training and others:
        names = " or ".join(f"--top-level-key {shown(top)[1:-1]}" for top in others[:4])
        raise UnsupportedModel(
            f"{checkpoint.path.name}: expected the weights of a model, got a "
            f"checkpoint that holds {', '.join(map(shown, training))} too; {names} "
            "takes the weights"
        )
