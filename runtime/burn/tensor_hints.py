"""Replacements of methods that tensors of PyTorch and NumPy have and ours do not.

Most operations are functions of ``burn.ops``. In the tables ``x`` and ``y`` are
tensors; the text after ``#`` is the reason.
"""

from burn.attribute_hints import Hints

#: Elementwise operations of one tensor that ``burn.ops`` has with the same name.
_UNARY = (
    *("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh"),
    *("erf", "erfinv", "exp", "expm1", "floor", "lgamma", "log", "log1p", "neg"),
    *("reciprocal", "round"),
    *("sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
    *("gelu", "relu", "sigmoid", "silu"),
)
#: Other operations of one tensor, likewise.
_FUNCTIONS = (
    *("all", "any", "argmax", "argmin", "argsort", "cumprod", "cumsum", "flip"),
    *("isinf", "isnan", "log_softmax", "logcumsumexp", "logsumexp", "prod", "softmax"),
    *("sort", "std", "unique", "var"),
    *("cholesky", "det", "inverse", "matrix_exp", "qr", "slogdet", "svd"),
    *("bitwise_not", "logical_not"),
)
#: Operations of two tensors, likewise.
_OF_TWO = (
    *("atan2", "fmod", "gcd", "maximum", "minimum", "prelu", "solve"),
    *("bitwise_and", "bitwise_or", "bitwise_xor"),
    *("bitwise_left_shift", "bitwise_right_shift"),
    *("logical_and", "logical_or", "logical_xor"),
)
_ARITHMETIC = {
    "+": ("add",),
    "-": ("sub", "subtract"),
    "*": ("mul", "multiply"),
    "/": ("div", "divide", "true_divide"),
    "//": ("floor_divide",),
    "%": ("remainder",),
    "**": ("pow", "float_power"),
}
_OPERATORS = {
    "@": ("matmul", "mm", "bmm", "mv", "dot"),
    "==": ("eq",),
    "!=": ("ne", "not_equal"),
    "<": ("lt", "less"),
    "<=": ("le", "less_equal"),
    ">": ("gt", "greater"),
    ">=": ("ge", "greater_equal"),
}
#: Names of functions that ``burn.ops`` has under another name.
_RENAMED = {
    "absolute": "abs",
    **{f"arc{name}": f"a{name}" for name in ("cos", "cosh", "sin", "sinh", "tanh")},
    "arctan": "atan",
    "fix": "trunc",
    "sgn": "sign",
    "hardshrink": "shrink",
}
_SCATTERED = "ops.scatter_elements(x, indices, y, axis=axis"
#: Operations that PyTorch also has in place, with names that end in ``_``.
_ELEMENTWISE: Hints = {
    **{name: f"ops.{name}(x)" for name in _UNARY},
    **{name: f"x {sign} y" for sign, names in _ARITHMETIC.items() for name in names},
    **{name: f"ops.{own}(x)" for name, own in _RENAMED.items()},
    "arctan2": "ops.atan2(x, y)",
    "fmax": "ops.maximum(x, y)",
    "fmin": "ops.minimum(x, y)",
    "negative": "-x",
    "square": "x * x",
    "rsqrt": "1.0 / ops.sqrt(x)",
    "hypot": "ops.sqrt(x * x + y * y)",
    "exp2": "2.0 ** x",
    "log2": "ops.log(x) / math.log(2.0)",
    "log10": "ops.log(x) / math.log(10.0)",
    "logit": "ops.log(x / (1.0 - x))",
    "logaddexp": "ops.logsumexp(ops.stack([x, y]), axis=0)",
    "erfc": "1.0 - ops.erf(x)",
    "frac": "ops.fmod(x, 1.0)",
    "deg2rad": "x * (math.pi / 180.0)",
    "rad2deg": "x * (180.0 / math.pi)",
    "lerp": "x + 0.5 * (y - x)",
    "addcmul": "x + y * y",
    "addcdiv": "x + y / y",
    **{name: "x + y @ y" for name in ("addmm", "addmv", "baddbmm")},
    "clamp": "ops.clip(x, low, high)",
    "clip": "ops.clip(x, low, high)",
    "clamp_min": "ops.clip(x, low)",
    "clamp_max": "ops.clip(x, high=high)",
    "nan_to_num": "ops.where(ops.isnan(x), 0.0, x)",
    "masked_fill": "ops.where(mask, y, x)",
    "index_fill": "ops.where(mask, y, x)",
    "tril": "ops.trilu(x, upper=False)",
    "triu": "ops.trilu(x)",
    "fill_diagonal": "ops.where(ops.eye(3, dtype=burn.bool_), y, x)",
    "scatter": f"{_SCATTERED})",
    **dict.fromkeys(
        ("scatter_add", "scatter_reduce", "index_add", "index_reduce"),
        f"{_SCATTERED}, reduction='add')",
    ),
    **dict.fromkeys(
        ("index_copy", "index_put", "put", "masked_scatter"), f"{_SCATTERED})"
    ),
}
_DTYPES = {
    "bool": "bool_",
    "byte": "uint8",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "float": "float32",
    "double": "float64",
    "cfloat": "complex64",
    "cdouble": "complex128",
}
_NEW = {name: f"ops.{name}(shape, dtype=x.dtype)" for name in ("zeros", "ones")}
_SHAPES_AND_TYPES: Hints = {
    **{name: f"x.cast(burn.{dtype})" for name, dtype in _DTYPES.items()},
    "type": "x.cast(dtype)",
    "astype": "x.cast(dtype)",
    "type_as": "x.cast(y.dtype)",
    "T": "x.permute()  # all axes reversed; x.mT swaps the last two",
    **dict.fromkeys(("t", "H", "mH", "adjoint"), "x.mT"),
    **dict.fromkeys(("swapaxes", "swapdims"), "x.transpose(0, 1)"),
    **dict.fromkeys(("movedim", "moveaxis"), "x.permute(axes)"),
    "view": "x.reshape(shape)",
    "unflatten": "x.reshape(shape)",
    "view_as": "x.reshape(y.shape)",
    "reshape_as": "x.reshape(y.shape)",
    "expand_as": "x.expand(y.shape)",
    "broadcast_to": "x.expand(y.shape)",
    "expand_dims": "x.unsqueeze(axis)",
    "ravel": "x.flatten()",
    "flat": "x.flatten()",
    "repeat": "ops.tile(x, repeats)",
    "tile": "ops.tile(x, repeats)",
    "repeat_interleave": "ops.take(x, indices, axis)  # with indices such as [0, 0, 1]",
    **dict.fromkeys(
        ("split", "split_with_sizes", "tensor_split"), "ops.split(x, sizes, axis)"
    ),
    "vsplit": "ops.split(x, sizes, 0)",
    "hsplit": "ops.split(x, sizes, 1)",
    "chunk": "ops.chunk(x, 2, axis)",
    "unbind": "list(x)",
    "fliplr": "ops.flip(x, 1)",
    "flipud": "ops.flip(x, 0)",
    "roll": "ops.roll(x, 1, axis)",
    "diff": "x[1:] - x[:-1]",
    "diagonal": "ops.einsum('ii->i', [x])",
    "diag": "ops.einsum('ii->i', [x])",
    "diag_embed": "x.unsqueeze(-1) * ops.eye(3)",
    "trace": "ops.einsum('ii->', [x])",
    **dict.fromkeys(("outer", "ger"), "x.unsqueeze(-1) * y.unsqueeze(-2)"),
    **{f"new_{name}": code for name, code in _NEW.items()},
    "new_full": "ops.full(shape, 1.0, dtype=x.dtype)",
    "new_empty": _NEW["zeros"],
    "new_tensor": "burn.tensor([1.0])",
    **dict.fromkeys(("dim", "ndimension"), "x.ndim"),
    **dict.fromkeys(("numel", "nelement"), "math.prod(x.shape)"),
    "nbytes": "x.numpy().nbytes",
    "strides": "x.numpy().strides",
    "stride": "x.numpy().strides  # in bytes",
    "is_contiguous": "x  # its layout in memory is not part of a tensor",
    "tobytes": "x.numpy().tobytes()",
    **dict.fromkeys(("itemsize", "element_size"), "x.dtype.itemsize"),
    "is_floating_point": "burn.dtypes.is_float(x.dtype)",
    "is_complex": "burn.dtypes.is_complex(x.dtype)",
    **dict.fromkeys(("device", "get_device"), "x.backend"),
    "is_cuda": "isinstance(x.backend, burn.Cuda)",
    "is_cpu": "isinstance(x.backend, burn.Cpu)",
}
_OTHERS: Hints = {
    **{name: f"ops.{name}(x)" for name in _FUNCTIONS},
    **{name: f"x {sign} y" for sign, names in _OPERATORS.items() for name in names},
    **{name: f"ops.{name}(x, y)" for name in _OF_TWO},
    "amax": "x.max(axis)",
    "amin": "x.min(axis)",
    "aminmax": "(x.min(), x.max())",
    "count_nonzero": "ops.sum((x != 0).cast(burn.int64))",
    "isfinite": "~(ops.isnan(x) | ops.isinf(x))",
    **{name: f"np.{name}(x, y)" for name in ("isclose", "allclose")},
    "logdet": "ops.log(ops.det(x))",
    "pinverse": "ops.pinv(x)",
    "lstsq": "ops.pinv(x) @ y",
    "digamma": "ops.polygamma(x, n=0)",
    "equal": "bool(ops.all(x == y))",
    "dist": "ops.reduce_l2(x - y)",
    "norm": "ops.reduce_l2(x)",
    **{name: f"np.{name}(x)" for name in ("median", "histogram")},
    "quantile": "np.quantile(x, 0.5)",
    "where": "ops.where(mask, x, y)",
    **dict.fromkeys(
        ("gather", "take_along_dim"), "ops.gather_elements(x, indices, axis)"
    ),
    **dict.fromkeys(("index_select", "take"), "ops.take(x, indices, axis)"),
    "select": "x[0]  # or ops.take(x, 0, axis)",
    "narrow": "x[0:2]",
    "masked_select": "x[mask]",
    "argwhere": "ops.nonzero(x).mT",
    "nonzero": "ops.nonzero(x)  # of shape (rank, count); .mT has PyTorch's order",
    "topk": "ops.topk(x, 2)",
}

SHARED: Hints = {**_ELEMENTWISE, **_SHAPES_AND_TYPES, **_OTHERS}
_CHANGES: Hints = {
    "squeeze_": "x.squeeze()",
    "unsqueeze_": "x.unsqueeze(axis)",
    "t_": "x.mT",
    **dict.fromkeys(("transpose_", "swapaxes_", "swapdims_"), "x.transpose(0, 1)"),
    "resize_": "x.reshape(shape)",
    "detach_": "x.detach()",
    "fill_": "ops.full_like(x, 1.0)",
    "zero_": "ops.zeros_like(x)",
}
_IMMUTABLE = "x  # tensors never change, so that a copy is not needed"
_NEVER = "tensors never change"
TENSORS: Hints = {
    **{f"{name}_": f"{code}  # {_NEVER}" for name, code in _ELEMENTWISE.items()},
    **{name: f"{code}  # {_NEVER}" for name, code in _CHANGES.items()},
    "cpu": "x.to(burn.Cpu())",
    "cuda": "x.to(burn.Cuda(0))",
    "copy": _IMMUTABLE,
    "clone": _IMMUTABLE,
    "contiguous": _IMMUTABLE,
    "copy_": f"y  # {_NEVER}; parameters and buffers have set(y)",
    "requires_grad_": "x.to(burn.Autodiff(burn.Cpu())).require_grad()",
    "requires_grad": "x.backend.tracks_gradients",
    "grad": "loss.backward()[x]  # gradients are returned, by tensor",
    "retain_grad": "loss.backward()[x]  # gradients are returned, by tensor",
    "grad_fn": "x.backend.tracks_gradients",
}
#: Of parameters and buffers, where ``x`` is one.
BOXES: Hints = {
    **{f"{name}_": f"x.set({code})" for name, code in _ELEMENTWISE.items()},
    "data": "x.value",
    "item": "x.value.item()",
    "tolist": "x.value.tolist()",
    "size": "x.value.size",
    "cpu": "x.to(burn.Cpu())",
    "cuda": "x.to(burn.Cuda(0))",
    "clone": "x.value  # tensors never change, so that a copy is not needed",
    "copy_": "x.set(y)",
    "fill_": "x.set(ops.full_like(x, 1.0))",
    "zero_": "x.set(ops.zeros_like(x))",
    "requires_grad_": "module.freeze('weight')  # x.requires_grad = True also works",
    "grad": "loss.backward()[x]  # gradients are returned, by parameter",
}
