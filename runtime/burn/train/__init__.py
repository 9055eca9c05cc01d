"""Training: compiled steps, checkpoints with bitwise resume, and a learner."""

from burn.train.dashboard import Dashboard as Dashboard
from burn.train.learner import Learner as Learner, Result as Result
from burn.train.loggers import (
    Logger as Logger,
    MemoryLogger as MemoryLogger,
    Run as Run,
    TensorBoardLogger as TensorBoardLogger,
)
from burn.train.options import AnyOptimizer as AnyOptimizer
from burn.train.outputs import (
    Classified as Classified,
    Regressed as Regressed,
    loss_of as loss_of,
)
from burn.train.step import Step as Step, step as step
from burn.train.strategy import (
    KeepAny as KeepAny,
    KeepBest as KeepBest,
    KeepLast as KeepLast,
    Patience as Patience,
    Strategy as Strategy,
)
from burn.train.summary import MetricSummary as MetricSummary, Summary as Summary
