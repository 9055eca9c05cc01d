"""Positional arguments: the order of PyTorch's schemas for every rule."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from burn_import.frontends.torch_export.aten import RULES
from burn_import.frontends.torchscript.operators.signatures import parameter_names

pytestmark = pytest.mark.torch
if find_spec("torch") is None:
    pytest.skip(f"{len(RULES)} rules: needs PyTorch", allow_module_level=True)

#: Calls that no archive has, or whose rules have no positional arguments.
UNWRITTEN = (
    *("aten._assert", "aten._functional", "aten.sym_constrain", "aten._linalg_check"),
    *("aten._autocast_to", "aten.where.default", "aten.empty_permuted"),
    *("aten.can_cast", "aten.promote_types", "aten.result_type"),
)
#: Arguments to which the rule gives another name than the schema.
SYNONYMS = {
    ("split_sizes", "split_size"),
    ("dim0", "axis0"),
    ("dim1", "axis1"),
    ("from_", "from"),
    ("src", "value"),
    ("tensors", "matrices"),
    ("padding", "pad"),
    ("repeats", "dims"),
    ("other", "tensor"),
    ("other", "vec"),
    ("dim", "unbiased"),
}


def positional(target: str) -> list[str] | None:
    """Return the positional arguments of an overload; None if PyTorch lacks it."""
    torch = pytest.importorskip("torch")
    _, name, overload = target.split(".", 2)
    try:
        schema = getattr(getattr(torch.ops.aten, name), overload)._schema
    except AttributeError:
        return None
    return [arg.name for arg in schema.arguments if not arg.kwarg_only]


@pytest.mark.parametrize("target", sorted(key for key in RULES if "aten." in key[:5]))
def test_arguments_by_position_are_those_of_the_schema(target: str) -> None:
    theirs = None if target.startswith(UNWRITTEN) else positional(target)
    if theirs is None:
        pytest.skip("not in the code of an archive")
    ours = parameter_names(target.removeprefix("aten."))
    for mine, name in zip(ours, theirs, strict=False):
        assert mine == name or (mine, name) in SYNONYMS
