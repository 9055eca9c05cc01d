"""Branches and loops that are decided when the model runs."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from burn_import.exported.builder import Value
from burn_ir import UnsupportedModel

if TYPE_CHECKING:
    from burn_import.torchscript.expressions import Frame
    from burn_import.torchscript.statements import Statements


def branched(machine: Statements, node: ast.If, frame: Frame, condition: Value) -> None:
    """Write both blocks of a branch."""
    raise UnsupportedModel("a branch on what is known only when the model runs")


def repeated(
    machine: Statements, node: ast.For | ast.While, frame: Frame, count: Value | None
) -> None:
    """Write the block of a loop."""
    raise UnsupportedModel("a loop that ends when the model runs")
