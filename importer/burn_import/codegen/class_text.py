"""The text of a class, as input of the template."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from burn_import.structure import ModuleNode


@dataclass
class MethodText:
    """A method that ``__call__`` runs."""

    name: str
    signature: str
    result: str
    body: list[str]


@dataclass(frozen=True)
class ResultClass:
    """A NamedTuple, with names and types of its fields.

    ``owner`` says what returns it: ``the model``, or the name of a class.
    """

    name: str
    owner: str
    fields: Sequence[tuple[str, str]]


@dataclass
class ClassText:
    """Values of the class template; ``constructor`` lists the class's parameters."""

    name: str
    doc: str
    fields: list[str]
    signature: str = ""
    result: str = ""
    body: list[str] = field(default_factory=list)
    root: bool = False
    modules: set[str] = field(default_factory=set)
    constructor: str = ""
    #: Key for the comparison of classes: types, and the body without the file's names.
    plain: list[str] = field(default_factory=list)
    #: The methods that a long body is split into.
    methods: list[MethodText] = field(default_factory=list)
    #: Input types that calls check: ``image="float32[batch, 3]"``.
    checks: list[str] = field(default_factory=list)
    #: The function's name if the class is emitted as a function.
    function: str = ""
    base: str = "nn.Module"
    #: Constructor arguments of ``base``.
    steps: str = ""
    #: Record names of fields that differ from their attributes.
    record_names: dict[str, str] = field(default_factory=dict)
    #: What all record keys begin with, of the root.
    record_prefix: str = ""
    #: Names and types of several results.
    result_fields: list[tuple[str, str]] = field(default_factory=list)
    #: The submodule whose several results the body returns unchanged, if any.
    returned_module: ModuleNode | None = None
    #: The NamedTuple that is written before the class.
    result_class: ResultClass | None = None

    @property
    def sources(self) -> list[str]:
        """The assignments of ``__init__``, and the arguments of ``base`` if any."""
        return [*self.fields, self.steps] if self.steps else self.fields

    @property
    def code(self) -> list[str]:
        """The lines of the body and of the methods."""
        return [*self.body, *(line for method in self.methods for line in method.body)]

    @property
    def parameters(self) -> str:
        """The parameters of a function, without ``self``."""
        return self.signature.removeprefix(", ")
