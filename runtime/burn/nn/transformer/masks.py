"""Attention masks in PyTorch's convention."""

from burn import dtypes, ops
from burn.tensor import Tensor


def attention_mask(
    attn_mask: Tensor | None,
    key_padding_mask: Tensor | None,
    shape: tuple[int, int, int, int],
) -> Tensor | None:
    """Return one mask, which broadcasts to ``shape``, for :func:`burn.ops.attention`.

    ``shape`` is [batch, heads, rows, columns]. Of both arguments a bool hides where it
    is true, and a float is added to the scores. The result is of bool, true where keys
    are seen, unless one of them is a float.

    Args:
        attn_mask: [rows, columns] or [batch heads, rows, columns].
        key_padding_mask: [batch, columns].

    Raises:
        ValueError: one has another shape.
    """
    batch, heads, rows, columns = shape
    masks = []
    if attn_mask is not None:
        _check("attn_mask", attn_mask, (rows, columns), (batch * heads, rows, columns))
        is_shared = attn_mask.ndim == 2
        masks.append(attn_mask if is_shared else attn_mask.reshape(*shape))
    if key_padding_mask is not None:
        _check("key_padding_mask", key_padding_mask, (batch, columns))
        masks.append(key_padding_mask.reshape(batch, 1, 1, columns))
    if not masks:
        return None
    if all(mask.dtype == dtypes.bool_ for mask in masks):
        hidden = masks[0] if len(masks) == 1 else ops.logical_or(*masks)
        return ops.logical_not(hidden)
    added = [_added(mask) for mask in masks]
    return added[0] if len(added) == 1 else added[0] + added[1]


def _added(mask: Tensor) -> Tensor:
    """Return the addend of scores for a mask."""
    if mask.dtype != dtypes.bool_:
        return mask
    return ops.where(mask, float("-inf"), 0.0)


def _check(name: str, mask: Tensor, *shapes: tuple[int, ...]) -> None:
    if mask.shape not in shapes:
        expected = " or ".join(str(list(shape)) for shape in shapes)
        raise ValueError(f"{name}: expected {expected}, got {list(mask.shape)}")
