"""Files of which no module can be made: of weights alone, or of a kind not yet read."""

from pathlib import Path

from burn.record import HEAD_SIZE, describe_foreign
from burn_ir import UnsupportedModel

_EXPORT = "Export the model to ONNX with torch.onnx.export and import that."
_WEIGHTS = (
    "no module can be made of weights without the program that uses them. "
    f"{_EXPORT} The weights alone become a record with -o NAME.safetensors."
)
#: What to do with each kind that ``describe_foreign`` tells.
REMEDIES = {
    **dict.fromkeys(
        (
            "safetensors file",
            "PyTorch checkpoint (zip)",
            "PyTorch checkpoint (pickle, before 1.6)",
            "pickle",
        ),
        _WEIGHTS,
    ),
    "TorchScript archive (zip)": (
        f"its program is not imported yet. {_EXPORT} Its weights alone become a record "
        "with -o NAME.safetensors."
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
            f"{path.name}: this is a {foreign.kind}, whatever its name says; "
            f"{REMEDIES[foreign.kind]}"
        )
