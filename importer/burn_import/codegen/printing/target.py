"""Targets of code generation: Burn, or another library with modules and tensors."""

from dataclasses import dataclass

from burn_import.codegen.printing.expressions import Renderer


@dataclass(frozen=True)
class Target:
    """A library that generated modules call.

    ``renderer`` writes expressions. Where ``has_record_names``, attributes of modules
    may have other names in keys, so that numbered attributes can become lists.
    """

    renderer: type[Renderer]
    has_record_names: bool


BURN = Target(Renderer, has_record_names=True)
