"""What a caller decides about an import."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """How a module is written.

    ``class_name`` is the name of the top class; None takes it from ``stem``, the name
    of the module to write. ``passes`` names the passes that simplify the graph; None
    is all of them. ``operators`` names importable modules, which declare operators of
    the caller's own.
    """

    class_name: str | None = None
    stem: str = "model"
    passes: tuple[str, ...] | None = None
    operators: tuple[str, ...] = ()

    @property
    def weights(self) -> str:
        """The file name of the record that the module loads, beside it."""
        return f"{self.stem}.safetensors"
