"""Input types for the decorator of the model's ``__call__``."""

from collections.abc import Sequence

from burn_import.codegen.gate.allowed import INPUT
from burn_import.codegen.module.descriptions import origin_of, shown_type
from burn_import.tracing.identifiers import literal
from burn_ir.graph import Graph


def input_checks(graph: Graph, names: Sequence[str]) -> list[str]:
    """Return the arguments of ``nn.check_inputs``: ``image="float32[batch, 3]",``.

    ``names`` are the parameters for the inputs of ``graph``. A different name in
    the file is in a comment. Inputs of unknown type are left out.
    """
    checks = []
    for name, value in zip(names, graph.arguments, strict=True):
        value_type = graph.type(value)
        text = "" if value_type is None else shown_type(value_type)
        if text and INPUT.fullmatch(text):
            origin = origin_of(name, value)
            comment = f"  # {origin} in the file" if origin else ""
            checks.append(f"{name}={literal(text)},{comment}")
    if checks:
        # Without a trailing comma black may join the lines.
        checks[-1] = checks[-1].removesuffix(",")
    return checks
