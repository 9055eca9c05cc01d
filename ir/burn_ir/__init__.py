"""The intermediate representation: dimensions, types, graphs and operators."""

from burn_ir import ops as _ops
from burn_ir.build import build
from burn_ir.errors import (
    InvalidModel,
    InvalidOperand,
    ModelError,
    Problem,
    Undecided,
    UnreadableFile,
    UnsupportedModel,
)
from burn_ir.evaluate import evaluate
from burn_ir.graph import Constants, Graph, Node
from burn_ir.graph_builder import GraphBuilder, Origin
from burn_ir.infer import infer
from burn_ir.op import Branch, Layer, Op, Value, operator, operators
from burn_ir.raw import RawGraph, RawModel, RawNode
from burn_ir.types import Type
from burn_ir.upgrade import Draft

del _ops  # imported to declare the operators

__all__ = [
    "Branch",
    "Constants",
    "Draft",
    "Graph",
    "GraphBuilder",
    "InvalidModel",
    "InvalidOperand",
    "Layer",
    "ModelError",
    "Node",
    "Op",
    "Origin",
    "Problem",
    "RawGraph",
    "RawModel",
    "RawNode",
    "Type",
    "Undecided",
    "UnreadableFile",
    "UnsupportedModel",
    "Value",
    "build",
    "evaluate",
    "infer",
    "operator",
    "operators",
]
