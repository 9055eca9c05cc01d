"""Untyped models as stored in files: any operator version, in any order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from burn_ir.types import Array, Type


@dataclass(frozen=True)
class RawNode:
    """A node as stored.

    ``attrs`` holds numbers, strings, arrays, tuples of them, and subgraphs as
    :class:`RawGraph`. An empty name in ``inputs`` or ``outputs`` is None here.
    """

    op_type: str
    domain: str
    attrs: Mapping[str, Any]
    inputs: tuple[str | None, ...]
    outputs: tuple[str | None, ...]
    name: str = ""
    scope: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()

    def __init__(
        self,
        op_type: str,
        domain: str,
        attrs: Mapping[str, Any],
        inputs: tuple[str | None, ...],
        outputs: tuple[str | None, ...],
        name: str = "",
        scope: tuple[str, ...] = (),
        classes: tuple[str, ...] = (),
    ) -> None:
        # For speed, like the one of ``burn_ir.graph.Node``.
        self.__dict__.update(
            op_type=op_type,
            domain=domain,
            attrs=attrs,
            inputs=inputs,
            outputs=outputs,
            name=name,
            scope=scope,
            classes=classes,
        )


@dataclass(frozen=True)
class RawGraph:
    """A graph as stored; subgraphs may read values of the enclosing graphs.

    ``inputs`` have their declared types: dimensions are integers, symbols, or fresh
    symbols where the file has none. ``defaults`` are the default arrays of inputs
    (they are not among ``constants``). ``states`` are the last inputs with their
    initial arrays, which are stored under the names of the inputs; a call replaces
    them by as many last outputs. ``trained`` distinguishes parameters (True) from
    buffers (False), where the file does; buffers in ``transient`` are in no
    ``state_dict`` (PyTorch's ``persistent=False``).
    """

    name: str
    inputs: Mapping[str, Type]
    outputs: tuple[str, ...]
    nodes: tuple[RawNode, ...]
    constants: Mapping[str, Array]
    defaults: Mapping[str, Array] = field(default_factory=dict)
    doc: str = ""
    states: Mapping[str, Array] = field(default_factory=dict)
    trained: Mapping[str, bool] = field(default_factory=dict)
    transient: frozenset[str] | None = None


@dataclass(frozen=True)
class RawModel:
    """A main graph with the versions and origin that its file records.

    ``notes`` are sentences for the module's reader: facts that the file lacks and
    defaults that were assumed. ``inside`` is the attribute that contains the whole
    model and is left out of its keys: ``layers`` where PyTorch's own keys begin
    with numbers.
    """

    graph: RawGraph
    opsets: Mapping[str, int]
    producer: str = ""
    notes: tuple[str, ...] = ()
    inside: str = ""
