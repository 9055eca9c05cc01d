"""The intermediate representation: dimensions, types, graphs and operators."""

from burn_ir.build import build
from burn_ir.errors import (
    InvalidModel,
    ModelError,
    Problem,
    Undecided,
    UnreadableFile,
    UnsupportedModel,
)
from burn_ir.evaluate import evaluate
from burn_ir.graph import Constants, Graph, Node
from burn_ir.infer import infer
from burn_ir.op import Branch, Layer, Op, operators
from burn_ir.raw import RawGraph, RawModel, RawNode
from burn_ir.types import Type

__all__ = [
    "Branch",
    "Constants",
    "Graph",
    "InvalidModel",
    "Layer",
    "ModelError",
    "Node",
    "Op",
    "Problem",
    "RawGraph",
    "RawModel",
    "RawNode",
    "Type",
    "Undecided",
    "UnreadableFile",
    "UnsupportedModel",
    "build",
    "evaluate",
    "infer",
    "operators",
]
