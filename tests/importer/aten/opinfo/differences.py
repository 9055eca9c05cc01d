"""Operators whose results are not compared with PyTorch's, each with the reason.

A dtype in front of a name limits a difference to operands of it.
"""

from __future__ import annotations

from collections.abc import Mapping

_REASONS: Mapping[str, str] = {
    "draws random numbers": """
        bernoulli cauchy exponential geometric log_normal multinomial normal
        normal.in_place normal.number_mean rand_like randint_like randn_like uniform
        pca_lowrank svd_lowrank""",
    "its elements are not initialized": """
        empty empty_like empty_permuted empty_strided new_empty new_empty_strided""",
    "drops elements at random in training mode": """
        nn.functional.alpha_dropout nn.functional.dropout nn.functional.dropout2d
        nn.functional.dropout3d nn.functional.feature_alpha_dropout.with_train
        nn.functional.multi_head_attention_forward
        nn.functional.scaled_dot_product_attention""",
    "singular vectors and eigenvectors have either sign": """
        linalg.eigh linalg.svd svd""",
    "statistics that PyTorch leaves empty outside of training are returned": """
        _native_batch_norm_legit native_batch_norm""",
    "the reduction of no elements is minus infinity": """
        linalg.norm linalg.norm.subgradients_at_zero""",
    "traces do not tell whether the first axis has one element": """
        corrcoef cov squeeze squeeze_copy""",
    "padding that crops all elements and then repeats one is an error": """
        nn.functional.pad.replicate_negative""",
    "the trace of a rank 0 tensor has one axis less": """
        linalg.vander gather""",
    "elements of equal rank are in another order": """
        mode int64-kthvalue int64-topk bool-sort bool-argsort""",
    "its operands are sparse": """
        sparse.sampled_addmm""",
    "integers are refused as a type error where PyTorch computes with them": """
        int64-nn.functional.avg_pool1d int64-nn.functional.avg_pool2d
        int64-nn.functional.avg_pool3d int64-nn.functional.local_response_norm
        int64-nn.functional.poisson_nll_loss
        int64-nn.functional.cosine_embedding_loss int64-native_dropout_backward
        int64-nn.functional.triplet_margin_loss
        bool-nn.functional.cosine_embedding_loss bool-native_dropout_backward""",
    "bools are refused as a type error where PyTorch computes with them": """
        bool-add bool-cummax bool-cummin bool-scatter_reduce.amin
        bool-scatter_reduce.amax""",
    "the sum or product of bools is a bool, in PyTorch an integer": """
        bool-square bool-sum_to_size""",
    "the squares overflow": """
        complex64-abs""",
    "empty operands of another rank are ignored by PyTorch": """
        complex64-cat""",
    "its operand is not symmetric, as the call promises": """
        linalg.pinv.hermitian""",
    "large numbers cancel": """
        matrix_exp nn.functional.conv_transpose3d""",
}
#: Names of operators, with the reason.
DIFFERENT: Mapping[str, str] = {
    name: reason for reason, names in _REASONS.items() for name in names.split()
}
_GRADIENTS: Mapping[str, str] = {
    "PyTorch differentiates by the triangle that is not read": """
        cholesky_inverse cholesky_solve""",
    "PyTorch gives overwritten elements the gradient of the others": """
        as_strided_scatter""",
    "the weights that max_norm changes are an input here": """
        nn.functional.embedding nn.functional.embedding_bag""",
    "one coordinate lies at a kink of the reflection": """
        grid_sampler_3d""",
    "elements that are not chosen have gradient 0, not NaN": """
        masked.prod""",
    "the gradient of a norm at NaN is NaN": """
        masked.norm""",
}
#: Names of operators whose gradients are not compared, with the reason.
OTHER_GRADIENTS: Mapping[str, str] = {
    name: reason for reason, names in _GRADIENTS.items() for name in names.split()
}
