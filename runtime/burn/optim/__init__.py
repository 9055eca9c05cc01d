"""Optimizers and learning rate schedules, with PyTorch's names and state in boxes.

``SGD``, ``Adam``, ``AdamW``, ...  update parameters: ``opt.step(loss.backward())``
``cosine``, ``one_cycle``, ...     set learning rates: ``schedule.step()``
``EMA``                            averages weights
``GradScaler``                     scales losses for gradients in float16
"""

from burn.optim.adam import Adam as Adam, AdamW as AdamW, Adan as Adan
from burn.optim.adaptive import Adagrad as Adagrad, RMSprop as RMSprop
from burn.optim.average import EMA as EMA
from burn.optim.clipping import (
    clip_grad_norm as clip_grad_norm,
    clip_grad_value as clip_grad_value,
    clip_grads_with_norm as clip_grads_with_norm,
    total_norm as total_norm,
)
from burn.optim.combined import Combined as Combined
from burn.optim.groups import Group as Group, vectors as vectors
from burn.optim.lbfgs import LBFGS as LBFGS
from burn.optim.muon import Muon as Muon
from burn.optim.optimizer import Optimizer as Optimizer
from burn.optim.scaler import GradScaler as GradScaler
from burn.optim.schedule import (
    Schedule as Schedule,
    composed as composed,
    constant as constant,
    cosine as cosine,
    exponential as exponential,
    linear as linear,
    multistep as multistep,
    noam as noam,
    one_cycle as one_cycle,
    sequential as sequential,
    step as step,
    warmup as warmup,
)
from burn.optim.sgd import SGD as SGD, Lion as Lion
from burn.optim.zero import ZeroRedundancyOptimizer as ZeroRedundancyOptimizer
