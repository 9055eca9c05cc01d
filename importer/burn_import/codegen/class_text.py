"""The text of a class, as the template shows it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class MethodText:
    """A method that ``__call__`` runs."""

    name: str
    signature: str
    result: str
    body: list[str]


@dataclass
class ClassText:
    """What the class template shows; ``constructor`` are the parameters of its own."""

    name: str
    doc: str
    fields: list[str]
    signature: str = ""
    result: str = ""
    body: list[str] = field(default_factory=list)
    root: bool = False
    modules: set[str] = field(default_factory=set)
    constructor: str = ""
    #: What tells classes apart: types, and the body without the file's names.
    plain: list[str] = field(default_factory=list)
    #: The pieces of a body that is too long for one function.
    methods: list[MethodText] = field(default_factory=list)
    #: The types of parameters that calls check: ``image="float32[batch, 3]"``.
    checks: list[str] = field(default_factory=list)
    #: What it is called where it is no class but a function.
    function: str = ""
    base: str = "nn.Module"
    #: What the constructor of ``base`` is given.
    steps: str = ""
    #: The names in keys of fields that are called otherwise.
    record_names: dict[str, str] = field(default_factory=dict)

    @property
    def parameters(self) -> str:
        """The parameters of a function, which has no ``self``."""
        return self.signature.removeprefix(", ")
