"""Executing generated source, and the check that a module takes its record."""

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

#: So many keys that do not fit are named.
_MOST_SHOWN = 3


def execute(text: str, module: ModuleType) -> None:
    """Execute generated source in the namespace of ``module``, which has a file name.

    Raises:
        UnsafeSource: the text is nothing that the compiler means to write; nothing of
            it was executed.
        UnsupportedModel: Python does not compile it, as it nests too many loops.
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
    """Return if ``weights``, by key, are the state of the class in a generated module.

    The class is instantiated. Its parameters have no values then, and no array is read:
    keys, shapes and dtypes are compared.

    Raises:
        UnsafeSource: the text is nothing that the compiler means to write.
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
    found = list(_misfits(dict(model.boxes()), weights))
    if found:
        more = len(found) - _MOST_SHOWN
        shown = "; ".join([*found[:_MOST_SHOWN], *([f"and {more} more"] * (more > 0))])
        raise InternalError(f"the record does not fit the module: {shown}")


def _misfits(
    boxes: Mapping[str, Box], weights: Sequence[tuple[str, Array]]
) -> Iterator[str]:
    """What a strict load of ``weights`` into ``boxes`` would refuse."""
    from burn.record.dtypes import recorded
    from burn.store.fit import described

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
            expected = described(box.dtype, box.shape)
            yield f"{key!r} is {described(array.dtype, array.shape)}, not {expected}"
    yield from (f"no array for {k!r}" for k, b in boxes.items() if b not in set_boxes)
