"""A model as its file has it: operators by name, at any version, in any order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from burn_ir.types import Array, Type


@dataclass(frozen=True)
class RawNode:
    """A node as written.

    ``attrs`` holds numbers, strings, arrays, tuples of them, and bodies as
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
        # As that of ``burn_ir.graph.Node``.
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
    """A graph as written; bodies may use names of the graphs around them.

    ``inputs`` have types as declared: extents are integers, symbols, or fresh symbols
    where the file says nothing. ``defaults`` are the inputs that a stored value stands
    in for (their arrays are not among ``constants``). ``states`` are the last
    inputs, with arrays that are theirs before the first call: these are kept under the
    names of the inputs, and a call replaces them by as many last outputs. ``trained``
    tells parameters (True) from buffers (False), where the file does; of the buffers,
    those in ``transient`` are in no ``state_dict`` (PyTorch's ``persistent=False``).
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
    """A main graph with what its file says of versions and origin.

    ``notes`` are sentences for whoever reads the module: what its file does not say and
    was taken as usual. ``inside`` is the attribute under which the whole model is, and
    no part of its keys: ``layers`` where PyTorch's own keys begin with numbers.
    """

    graph: RawGraph
    opsets: Mapping[str, int]
    producer: str = ""
    notes: tuple[str, ...] = ()
    inside: str = ""
