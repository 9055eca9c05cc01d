"""ATen operators without a rule, each with the reason."""

from collections.abc import Mapping

from burn_import.frontends.torch_export.registry import COMPLEX, RULES

#: Reasons, and the operators that they apply to.
REASONS: Mapping[str, str] = {
    "no primitive computes this matrix decomposition": """
        aten.linalg_eig.default aten.linalg_eigvals.default
        aten.linalg_lu.default aten.linalg_lu_factor.default
        aten.linalg_lu_factor_ex.default aten.linalg_lu_solve.default""",
    "no primitive computes this function": """
        aten.igamma.default aten.igammac.default aten.nextafter.default
        aten.special_erfcx.default aten.special_log_ndtr.default
        aten.special_bessel_j0.default aten.special_bessel_j1.default
        aten.special_bessel_y0.default aten.special_bessel_y1.default
        aten.special_chebyshev_polynomial_t.n_scalar
        aten.special_hermite_polynomial_h.n_scalar
        aten.special_laguerre_polynomial_l.n_scalar
        aten.special_legendre_polynomial_p.n_scalar
        aten.special_zeta.default""",
    "no primitive computes this loss": """
        aten._ctc_loss.Tensor aten._ctc_loss.default aten.ctc_loss.IntList
        aten.ctc_loss.Tensor""",
    "condition numbers are computed by norm 2 alone": "aten.linalg_cond.p_str",
    "the bound of random integers is expected as a number": "aten.randint_like.Tensor",
    "where its parts end is expected as numbers": """
        aten.tensor_split.tensor_indices_or_sections""",
    "its windows are random": """
        aten.fractional_max_pool2d.default aten.fractional_max_pool3d.default""",
    "sparse tensors are not supported": """
        aten._to_sparse.default aten.to_sparse.default aten._sparse_mm.reduce""",
}
UNSUPPORTED: Mapping[str, str] = {
    target: reason for reason, targets in REASONS.items() for target in targets.split()
}
#: The prefix of the calls with which ``torch.vmap`` surrounds the operators.
_STEPS_OF_TRANSFORMS = "torch._functorch."


def refusal_reason(target: str) -> str:
    """Return the reason why calls of a target are not supported."""
    if target in UNSUPPORTED:
        return f"this operator is not supported: {UNSUPPORTED[target]}"
    if target.startswith(_STEPS_OF_TRANSFORMS):
        return (
            "the steps of torch.vmap are not supported: "
            "program.run_decompositions() replaces them by the operators they apply"
        )
    name, _, overload = target.rpartition(".")
    overloads = sorted(
        other.rpartition(".")[2]
        for other in {**RULES, **COMPLEX}
        if other.rpartition(".")[0] == name
    )
    if overloads:
        return f"expected an overload among {', '.join(overloads)}, got {overload}"
    return "this operator is not supported"
