"""Training: a step as one plan, and checkpoints that resume it to the bit."""

from burn.train.outputs import (
    Classified as Classified,
    Regressed as Regressed,
    loss_of as loss_of,
)
from burn.train.step import Step as Step, step as step
