"""Error messages for PyTorch and NumPy attributes that burn does not have.

``x.view(2, 3)`` raises ``AttributeError: Tensor has no 'view'; use x.reshape(shape)``.
In the tables below ``x`` and ``y`` are tensors, ``module`` is a module.
"""

from collections.abc import Mapping
from typing import NoReturn

#: The replacement expression of each attribute and, after ``#``, the reason.
Hints = Mapping[str, str]

#: Operations that are functions of ``burn.ops`` with the same name.
_FUNCTIONS = (
    *("abs", "acos", "asin", "atan", "ceil", "cos", "erf", "exp", "floor", "isinf"),
    *("isnan", "log", "reciprocal", "round", "sign", "sin", "sqrt", "tan", "tanh"),
    *("gelu", "log_softmax", "logsumexp", "relu", "sigmoid", "silu", "softmax"),
    *("all", "any", "argmax", "argmin", "argsort", "cumprod", "cumsum", "flip"),
    *("nonzero", "prod", "sort", "std", "var"),
)
_IMMUTABLE = "x  # tensors never change, so that a copy is not needed"

SHARED: Hints = {
    **{name: f"ops.{name}(x)" for name in _FUNCTIONS},
    "T": "x.permute()  # all axes reversed; x.mT swaps the last two",
    "t": "x.mT",
    "swapaxes": "x.transpose(0, 1)",
    "swapdims": "x.transpose(0, 1)",
    "movedim": "x.permute(axes)",
    "moveaxis": "x.permute(axes)",
    "view": "x.reshape(shape)",
    "view_as": "x.reshape(y.shape)",
    "reshape_as": "x.reshape(y.shape)",
    "expand_as": "x.expand(y.shape)",
    "expand_dims": "x.unsqueeze(axis)",
    "ravel": "x.flatten()",
    "repeat": "ops.tile(x, repeats)",
    "tile": "ops.tile(x, repeats)",
    "split": "ops.split(x, sizes, axis)",
    "chunk": "ops.chunk(x, 2, axis)",
    "unbind": "list(x)",
    "dim": "x.ndim",
    "numel": "x.numpy().size",
    "nbytes": "x.numpy().nbytes",
    "itemsize": "x.dtype.itemsize",
    "type": "x.cast(dtype)",
    "astype": "x.cast(dtype)",
    "bool": "x.cast(burn.bool_)",
    "byte": "x.cast(burn.uint8)",
    "char": "x.cast(burn.int8)",
    "short": "x.cast(burn.int16)",
    "int": "x.cast(burn.int32)",
    "long": "x.cast(burn.int64)",
    "half": "x.cast(burn.float16)",
    "bfloat16": "x.cast(burn.bfloat16)",
    "float": "x.cast(burn.float32)",
    "double": "x.cast(burn.float64)",
    "device": "x.backend",
    "is_cuda": "isinstance(x.backend, burn.Cuda)",
    "clamp": "ops.clip(x, low, high)",
    "clip": "ops.clip(x, low, high)",
    "pow": "x ** y",
    "add": "x + y",
    "sub": "x - y",
    "mul": "x * y",
    "div": "x / y",
    "matmul": "x @ y",
    "mm": "x @ y",
    "bmm": "x @ y",
    "dot": "x @ y",
    "eq": "x == y",
    "ne": "x != y",
    "lt": "x < y",
    "le": "x <= y",
    "gt": "x > y",
    "ge": "x >= y",
    "masked_fill": "ops.where(mask, y, x)",
    "where": "ops.where(mask, x, y)",
    "gather": "ops.gather_elements(x, indices, axis)",
    "scatter": "ops.scatter_elements(x, indices, y, axis=axis)",
    "index_select": "ops.take(x, indices, axis)",
    "take": "ops.take(x, indices, axis)",
    "topk": "ops.topk(x, 2)",
    "tril": "ops.trilu(x, upper=False)",
    "triu": "ops.trilu(x)",
    "norm": "ops.reduce_l2(x)",
    "add_": "x + y  # tensors never change",
    "sub_": "x - y  # tensors never change",
    "mul_": "x * y  # tensors never change",
    "div_": "x / y  # tensors never change",
    "clamp_": "ops.clip(x, low, high)  # tensors never change",
}
TENSORS: Hints = {
    "cpu": "x.to(burn.Cpu())",
    "cuda": "x.to(burn.Cuda(0))",
    "copy": _IMMUTABLE,
    "clone": _IMMUTABLE,
    "contiguous": _IMMUTABLE,
    "fill_": "ops.full_like(x, 1.0)  # tensors never change",
    "zero_": "ops.zeros_like(x)  # tensors never change",
    "copy_": "y  # tensors never change; parameters and buffers have set(y)",
    "requires_grad_": "x.to(burn.Autodiff(burn.Cpu())).require_grad()",
    "requires_grad": "x.backend.tracks_gradients",
    "grad": "loss.backward()[x]  # gradients are returned, by tensor",
}
#: Of parameters and buffers, where ``x`` is one.
BOXES: Hints = {
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
_ASSIGNED = "attributes that are set are registered"
MODULES: Hints = {
    "cpu": "module.to(burn.Cpu())",
    "cuda": "module.to(burn.Cuda(0))",
    "device": "module.weight.backend",
    "train": "module.to(burn.Autodiff(burn.Cpu()))  # parameters there are trained",
    "eval": "module.valid()  # a copy for inference; nn.inference() is a context",
    "training": "module.weight.backend.tracks_gradients",
    "forward": "module(x)  # define __call__",
    "zero_grad": "loss.backward()  # gradients are returned and do not add up",
    "requires_grad_": "module.unfreeze()  # or module.freeze()",
    "named_parameters": "module.parameters()  # pairs of path and parameter",
    "named_modules": "module.modules()  # pairs of path and module",
    "named_children": "module.children()  # pairs of name and child",
    "named_buffers": "module.boxes()  # pairs of path and parameter or buffer",
    "buffers": "module.boxes()  # pairs of path and parameter or buffer",
    "apply": "module.modules()  # and a loop",
    "register_buffer": f"nn.buffer(3)  # {_ASSIGNED}",
    "register_parameter": f"nn.parameter(3)  # {_ASSIGNED}",
    "add_module": f"nn.Linear(3, 3)  # {_ASSIGNED}",
    "register_module": f"nn.Linear(3, 3)  # {_ASSIGNED}",
    "save": "module.save_weights(path)",
    "compile": "burn.compile(module)",
    "copy": "copy.deepcopy(module)",
    "summary": "nn.summary(module, x)",
}

OPTIMIZERS: Hints = {
    "zero_grad": "loss.backward()  # gradients are returned and do not add up",
    "param_groups": "opt.groups  # opt.lr = 0.1 sets the learning rate of all",
    "add_param_group": "optim.SGD(module, lr=0.1, groups={'weight': {'lr': 0.01}})",
}
SCHEDULES: Hints = {
    "get_last_lr": "schedule.lr",
    "last_epoch": "schedule.count",
}
_PARTS = ("config", "data", "distributed", "generation", "loss", "optim", "train")
#: Names of ``torch`` that ``burn`` does not have, and parts that are imported alone.
PACKAGE: Hints = {
    **{name: f"from burn import {name}" for name in _PARTS},
    "autocast": "nn.autocast('bf16')",
    "inference_mode": "nn.inference()",
    "manual_seed": "nn.init.seed(0)",
    "no_grad": "nn.inference(), or x.detach() for a tensor",
}

_LAZY = (
    *(f"{kind}{rank}d" for kind in ("Conv", "ConvTranspose") for rank in (1, 2, 3)),
    *(f"{kind}Norm{rank}d" for kind in ("Batch", "Instance") for rank in (1, 2, 3)),
    "Linear",
)
_LOSSES = {
    "BCELoss": "binary_cross_entropy_with_logits",
    "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "CosineEmbeddingLoss": "cosine_embedding_loss",
    "CrossEntropyLoss": "cross_entropy",
    "CTCLoss": "ctc_loss",
    "GaussianNLLLoss": "gaussian_nll_loss",
    "HingeEmbeddingLoss": "hinge_embedding_loss",
    "HuberLoss": "huber_loss",
    "KLDivLoss": "kl_div",
    "L1Loss": "l1_loss",
    "MarginRankingLoss": "margin_ranking_loss",
    "MSELoss": "mse_loss",
    "NLLLoss": "nll_loss",
    "PoissonNLLLoss": "poisson_nll_loss",
    "SmoothL1Loss": "smooth_l1_loss",
    "TripletMarginLoss": "triplet_margin_loss",
}
#: Names of ``torch.nn`` that ``burn.nn`` does not have.
LAYERS: Hints = {
    **{f"Lazy{name}": f"nn.{name}, with its input sizes" for name in _LAZY},
    **{name: f"burn.loss.{function}" for name, function in _LOSSES.items()},
    **{f"MaxUnpool{rank}d": "ops.max_unpool" for rank in (1, 2, 3)},
    "CrossMapLRN2d": "nn.LocalResponseNorm",
    "DataParallel": "burn.distributed",
    "FeatureAlphaDropout": "nn.AlphaDropout",
    "RNNBase": "nn.RNN, nn.LSTM or nn.GRU",
    "RNNCellBase": "nn.RNNCell, nn.LSTMCell or nn.GRUCell",
    "RReLU": "nn.LeakyReLU",
    "SyncBatchNorm": "nn.BatchNorm2d, whose statistics are those of each process",
    "functional": "burn.ops",
}


class Hint:
    """A descriptor for a missing attribute, which raises an error with the replacement.

    A descriptor in the class, since ``__getattr__`` makes it five times slower to read
    attributes that are there. An attribute of the instance comes before it.
    """

    __slots__ = ("name", "remedy")

    def __init__(self, name: str, hint: str) -> None:
        code, _, reason = hint.partition("  # ")
        self.name = name
        self.remedy = f"{code} ({reason})" if reason else code

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(
            f"{owner.__name__} has no {self.name!r}; use {self.remedy}"
        )


def add_hints(owner: type, hints: Hints) -> None:
    """Add hint descriptors to ``owner``, hidden from ``dir``.

    Raises:
        ValueError: ``owner`` has one of the attributes.
    """
    for name, hint in hints.items():
        if hasattr(owner, name):
            raise ValueError(f"{owner.__name__} has {name!r}, which needs no hint")
        setattr(owner, name, Hint(name, hint))
    setattr(owner, "__dir__", _visible_names)  # noqa: B010  unknown to mypy


def _visible_names(self: object) -> list[str]:
    """Return the attributes without hints, for ``dir`` and completion."""
    values: dict[str, object] = {}
    for cls in reversed(type(self).__mro__):
        values.update(vars(cls))
    values.update(getattr(self, "__dict__", {}))
    names = object.__dir__(self)
    return [name for name in names if not isinstance(values.get(name), Hint)]
