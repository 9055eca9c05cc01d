"""The constructs that the source check allows in a generated PyTorch module.

PyTorch need not be installed, so the names that forms and layers use are listed here.
"""

import re
from collections.abc import Mapping
from functools import cache

from burn_import.codegen.gate.allowed import READABLE, STRINGS, WORD, Rules
from burn_import.codegen.torch.forms.elementwise import SIMPLE
from burn_import.codegen.torch.layers import ROWS, SAME, STEPS
from burn_import.codegen.torch.module import helpers
from burn_import.codegen.torch.registry import NAMES as DTYPES, TENSOR_METHODS

IMPORTS = frozenset(
    {("", "math"), ("", "torch"), ("", "torch.nn.functional as F")}
    | {("pathlib", "Path"), ("typing", "NamedTuple"), ("typing", "Self")}
    | {("typing", "Any"), ("collections.abc", "Callable")}
    | {("torch", "Tensor"), ("torch", "nn")}
    | {("safetensors.torch", "load_file"), ("safetensors.torch", "load_model")}
)
_TORCH = frozenset(
    {"arange", "argsort", "cat", "div", "einsum", "empty", "finfo", "full"}
    | {"full_like", "linalg", "maximum", "minimum", "roll", "sort", "stack", "tensor"}
    | {"tril", "triu", "where", "zeros", "Tensor"}
)
_FUNCTIONAL = frozenset(
    {"adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"}
    | {"adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"}
    | {"affine_grid", "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm", "celu"}
    | {"conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d"}
    | {"conv_transpose3d", "elu", "embedding", "gelu", "grid_sample", "group_norm"}
    | {"hardsigmoid", "instance_norm", "interpolate", "leaky_relu", "linear"}
    | {"local_response_norm", "log_softmax", "max_pool1d", "max_pool2d", "max_pool3d"}
    | {"pad", "pixel_shuffle", "pixel_unshuffle", "scaled_dot_product_attention"}
    | {"selu", "softmax", "threshold"}
)
_LAYERS = frozenset({"Buffer", "Module", "Parameter", "ParameterList"})
PHRASES = frozenset(
    {"super().__init__", "super().forward", "model.eval", "Path(__file__).with_name"}
)


def _members(texts: object) -> set[str]:
    """Return the names that constructor calls read of ``nn``."""
    return set(re.findall(r"nn\.(\w+)", repr(texts)))


@cache
def public() -> Mapping[str, frozenset[str]]:
    """Return the readable names of each imported library module."""
    simple = [head.partition(".") for head in SIMPLE.values()]
    functions = frozenset(name for module, _, name in simple if module == "F")
    return {
        "torch": _TORCH | DTYPES | {name for m, _, name in simple if m == "torch"},
        "F": _FUNCTIONAL | functions,
        "nn": _LAYERS | SAME | ROWS.keys() | _members([*STEPS.values()]),
        "math": frozenset({"inf", "nan", "pi", "tau", "log", "sqrt", "prod", "ceil"}),
    }


def verbatim() -> Mapping[str, str]:
    """Return the source of each helper, by name."""
    return {name: one.source for name, one in helpers().items()}


TORCH_RULES = Rules(
    IMPORTS,
    public,
    TENSOR_METHODS,
    PHRASES,
    {
        "float": STRINGS["float"],
        "torch.einsum": STRINGS["ops.einsum"],
        "Path(__file__).with_name": WORD,
    },
    readable=READABLE | {"classmethod", "Self", "load_model", "slice", "str"},
    call="forward",
    attribute=re.compile(r"_?[^_].*"),
    called=frozenset({"load_model", "_load"}),
    verbatim=verbatim,
)
