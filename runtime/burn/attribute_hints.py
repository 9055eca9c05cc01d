"""Error messages for PyTorch and NumPy attributes that burn does not have.

``x.view(2, 3)`` raises ``AttributeError: Tensor has no 'view'; use x.reshape(shape)``.
In the tables below ``x`` is a tensor, ``module`` is a module; ``tensor_hints`` has the
tables of tensors and of functions.
"""

from collections.abc import Mapping
from typing import NoReturn

#: The replacement expression of each attribute and, after ``#``, the reason.
Hints = Mapping[str, str]

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
    **dict.fromkeys(("bfloat16", "half"), "nn.autocast('bf16')  # layers hold float32"),
    "float": "module  # layers hold float32",
    "get_parameter": "dict(module.parameters())[key]",
    "get_submodule": "dict(module.modules())[key]",
    "get_buffer": "dict(module.boxes())[key]",
    "copy": "copy.deepcopy(module)",
    "summary": "nn.summary(module, x)",
}

OPTIMIZERS: Hints = {
    "zero_grad": "loss.backward()  # gradients are returned and do not add up",
    "param_groups": "opt.groups  # opt.lr = 0.1 sets the learning rate of all",
    "add_param_group": "optim.SGD(module, lr=0.1, groups={'weight': {'lr': 0.01}})",
}
SCHEDULES: Hints = {"get_last_lr": "schedule.lr", "last_epoch": "schedule.count"}
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
#: Functions of ``burn.loss``, by the class of PyTorch.
LOSSES = {
    "BCELoss": "binary_cross_entropy",
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
    **{name: f"burn.loss.{function}" for name, function in LOSSES.items()},
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
