"""What a caller decides about an import."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """How a module is written.

    ``class_name`` is the name of the top class; None takes one from the model, or else
    from ``stem``, the name of the module to write. ``weights`` is the name of the record
    that the module loads by default. ``source`` is the name of the model's file.
    """

    class_name: str | None = None
    stem: str = "model"
    source: str = "model.onnx"

    @property
    def weights(self) -> str:
        """The file name of the record beside the module."""
        return f"{self.stem}.safetensors"
