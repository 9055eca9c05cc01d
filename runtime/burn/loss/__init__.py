"""Losses, with the names and results of ``torch.nn.functional``."""

from burn.loss.classification import (
    binary_cross_entropy as binary_cross_entropy,
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
    cross_entropy as cross_entropy,
    kl_div as kl_div,
    nll_loss as nll_loss,
)
from burn.loss.ctc import ctc_loss as ctc_loss
from burn.loss.embedding import (
    cosine_embedding_loss as cosine_embedding_loss,
    hinge_embedding_loss as hinge_embedding_loss,
    margin_ranking_loss as margin_ranking_loss,
    triplet_margin_loss as triplet_margin_loss,
)
from burn.loss.regression import (
    gaussian_nll_loss as gaussian_nll_loss,
    huber_loss as huber_loss,
    l1_loss as l1_loss,
    mse_loss as mse_loss,
    poisson_nll_loss as poisson_nll_loss,
    smooth_l1_loss as smooth_l1_loss,
)
