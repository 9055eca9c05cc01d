"""Replacements of functions of PyTorch and NumPy, for ``burn`` and ``burn.ops``.

``burn.square(x)`` raises ``AttributeError: module 'burn' has no attribute 'square'; use
x * x``. This module is imported by the first such error.
"""

from burn.attribute_hints import LOSSES, PACKAGE, Hints
from burn.ops.names import NAMES
from burn.tensor_hints import SHARED

_LOSSES = {function: f"burn.loss.{function}" for function in LOSSES.values()}
_BY_RANK = {
    f"{name}{rank}d": f"ops.{name}"
    for name in ("conv", "conv_transpose", "avg_pool", "max_pool", "lp_pool")
    for rank in (1, 2, 3)
}
#: Names of ``torch``, ``torch.nn.functional`` and ``numpy`` that are no methods.
_FUNCTIONS: Hints = {
    **_LOSSES,
    **_BY_RANK,
    **{
        f"adaptive_{kind}_pool{n}d": f"ops.adaptive_{kind}_pool"
        for kind in ("avg", "max")
        for n in (1, 2, 3)
    },
    **{f"max_unpool{n}d": "ops.max_unpool" for n in (1, 2, 3)},
    **dict.fromkeys(("cat", "concatenate"), "ops.concat"),
    **dict.fromkeys(("vstack", "hstack", "dstack"), "ops.concat"),
    **dict.fromkeys(("interpolate", "upsample"), "ops.resize"),
    **dict.fromkeys(("hardtanh", "relu6"), "ops.clip"),
    **dict.fromkeys(("rand", "rand_like"), "ops.uniform"),
    **dict.fromkeys(("randn", "randn_like"), "ops.normal"),
    "empty": "ops.zeros",
    "empty_like": "ops.zeros_like",
    "linspace": "burn.tensor(np.linspace(0.0, 1.0, 5))",
    "as_tensor": "burn.tensor",
    "asarray": "burn.tensor",
    "hardsigmoid": "ops.hard_sigmoid(x, alpha=1 / 6)",
    "hardswish": "ops.hard_swish",
    "local_response_norm": "ops.lrn",
    "logsigmoid": "-ops.softplus(-x)",
    "softshrink": "ops.shrink(x, bias=0.5)",
    "threshold": "ops.thresholded_relu",
    "pixel_shuffle": "ops.depth_to_space(x, blocksize=2, mode='CRD')",
    "pixel_unshuffle": "ops.space_to_depth(x, blocksize=2, mode='CRD')",
    "scaled_dot_product_attention": "ops.attention",
    "save": "module.save_weights(path)",
    "load": "module.load_weights(path)",
}


def function_hint(name: str) -> str | None:
    """Return the replacement of a function of PyTorch or NumPy, or None."""
    if any(name in group for group in NAMES.values()):
        return f"ops.{name}"
    for hints in (PACKAGE, _FUNCTIONS, SHARED):
        if name in hints:
            return hints[name]
    return None
