"""Execution of generated source, and the check that its record fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from burn_import.internal import InternalError
from burn_ir import UnsupportedModel

if TYPE_CHECKING:
    from burn.box import Box
    from burn_ir.types import Array

#: Maximum number of mismatched keys in a message.
_MOST_SHOWN = 3


def execute(text: str, module: ModuleType) -> None:
    """Execute generated source in the namespace of ``module``, which has a file name.

    Raises:
        UnsafeSource: the source contains constructs that the compiler never writes;
            nothing of it was executed.
        UnsupportedModel: Python cannot compile it, since loops are nested too deeply.
    """
    from burn_import.codegen.gate.gate import check_body

    check_body(text.encode("ascii"))
    try:
        code = compile(text, str(module.__file__), "exec")
    except SyntaxError as error:
        raise UnsupportedModel(
            f"expected loops that Python can compile inside each other, got {error.msg}"
        ) from error
    exec(code, module.__dict__)


def check_record(
    text: str, class_name: str, weights: Sequence[tuple[str, Array]]
) -> None:
    """Check that ``weights``, by key, fit the state of a generated class.

    The class is instantiated without parameter values, and no array is read: only
    keys, shapes and dtypes are compared.

    Raises:
        UnsafeSource: the source contains constructs that the compiler never writes.
        InternalError: the record does not fit.
    """
    from burn.nn import Module
    from burn.nn.init import separate_seeds

    module = ModuleType("burn_import.checked")
    module.__file__ = f"<{module.__name__}>"
    execute(text, module)
    with separate_seeds():
        model = getattr(module, class_name)()
    assert isinstance(model, Module)
    misfits = list(_misfits(dict(model.boxes()), weights))
    if misfits:
        more = len(misfits) - _MOST_SHOWN
        shown = "; ".join(
            [*misfits[:_MOST_SHOWN], *([f"and {more} more"] * (more > 0))]
        )
        raise InternalError(f"the record does not fit the module: {shown}")


def _misfits(
    boxes: Mapping[str, Box], weights: Sequence[tuple[str, Array]]
) -> Iterator[str]:
    """Yield the mismatches for which a strict load into ``boxes`` would fail."""
    from burn.record.dtypes import recorded
    from burn.store.tensor_matching import type_text

    keys = [key for key, _ in weights]
    set_boxes = {boxes[key] for key in keys if key in boxes}
    yield from (f"{key!r} twice" for key, n in Counter(keys).items() if n > 1)
    for key, array in weights:
        box = boxes.get(key)
        if box is None:
            yield f"no attribute for {key!r}"
        elif array.shape != box.shape or array.dtype not in (
            box.dtype,
            recorded(box.dtype),
        ):
            expected = type_text(box.dtype, box.shape)
            yield f"{key!r} is {type_text(array.dtype, array.shape)}, not {expected}"
    yield from (f"no array for {k!r}" for k, b in boxes.items() if b not in set_boxes)
