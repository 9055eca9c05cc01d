"""Files that are models of a kind that is not imported yet."""

from pathlib import Path

from burn.record import HEAD_SIZE, describe_foreign
from burn_ir import UnsupportedModel

#: What to do with each kind that ``describe_foreign`` tells.
REMEDIES = {
    "safetensors file": (
        "It holds weights without the program that uses them; export the model to ONNX "
        "with torch.onnx.export and import that."
    ),
    **dict.fromkeys(
        (
            "PyTorch checkpoint (zip)",
            "PyTorch checkpoint (pickle, before 1.6)",
            "TorchScript archive (zip)",
            "PyTorch exported program (.pt2, zip)",
            "pickle",
        ),
        "Export the model to ONNX with torch.onnx.export and import that.",
    ),
}


def refuse_not_yet(path: Path) -> None:
    """Return if the file may be of a kind that is imported, whatever its name.

    Raises:
        UnsupportedModel: it is a PyTorch or safetensors file.
        OSError: it cannot be opened.
    """
    if not path.is_file():
        return
    with path.open("rb") as file:
        foreign = describe_foreign(file.read(HEAD_SIZE))
    if foreign is not None and foreign.kind in REMEDIES:
        raise UnsupportedModel(
            f"{path.name}: this is a {foreign.kind}, whatever its name says; these are "
            f"not imported yet. {REMEDIES[foreign.kind]}"
        )
