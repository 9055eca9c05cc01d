"""Batch norms that use their running statistics in training, selected by path."""

from __future__ import annotations

from typing import TypeVar

from burn.nn.mixins import Mixin, mix_in, take_out
from burn.nn.module import Module
from burn.nn.norm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from burn.nn.patterns import selected

M = TypeVar("M", bound=Module)


def freeze_statistics(model: M, pattern: str = "*", *, frozen: bool = True) -> M:
    """Use the running statistics of batch norms in training, and return ``model``.

    They are neither computed from batches nor updated, as after ``eval()`` of these
    modules in PyTorch. Use it to fine-tune with small batches. Weight and bias are
    still trained: freeze them with :meth:`Module.freeze`. ::

        nn.freeze_statistics(model, "backbone")
        model.freeze("backbone")

    Args:
        model: the model to change.
        pattern: a path, or a pattern of paths as in :meth:`Module.freeze`.
        frozen: False to use the statistics of batches again.

    Raises:
        ValueError: no batch norm matches.
    """
    kinds = BatchNorm1d, BatchNorm2d, BatchNorm3d
    paths = {path: each for path, each in model.modules() if isinstance(each, kinds)}
    for path in selected(paths, pattern):
        if frozen:
            mix_in(paths[path], _WithRunningStatistics)
        else:
            take_out(paths[path], _WithRunningStatistics)
    return model


class _WithRunningStatistics(Mixin):
    """Mixin of batch norms with fixed statistics."""

    @property
    def _is_trained(self) -> bool:
        return False

    def describe(self) -> str:
        return f"{super().describe()}, frozen statistics"
