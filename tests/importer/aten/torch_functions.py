"""PyTorch functions as source strings; the string is the name of the case."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.importer.aten.torch_layers import SIZE, Entry, drawn

#: Expressions of ``x`` [n, 4, 7] and ``y`` [n, 4, 7]; ``F`` are the functionals.
TEXTS = """
x.std(1, keepdim=True) | x.var((0, 1), correction=0) | torch.var_mean(x, 1) | x.max(1)
x.min(1) | x.median(1) | x.kthvalue(2, 1) | x.topk(2, 1) | x.aminmax(dim=1)
x.sort(1, descending=True) | x.argsort(1) | x.cumprod(1) | x.logcumsumexp(1)
x.norm(1, 1) | x.norm() | torch.linalg.norm(x, dim=(1, 2)) | x.quantile(0.3, 1)
(x > 0).all(1) | (x > 0).any(1, keepdim=True) | x.logsumexp((1, 2)) | x.amax((0, 1))
x.sum((0, 1), dtype=torch.float64) | x.clamp(-0.3, 0.2) | x.clamp(y * 0, y * 0 + 1)
torch.where(x > 0, x, -x) | torch.where(x > 0, x, 0.0) | torch.where(x > 0, 1.0, 0.0)
x.masked_fill(x > 0, -1e9) | x.masked_scatter(x > 0, y) | x[:, torch.tensor([0, 2])]
x[:, :, torch.tensor([0, 2])] | x[:, torch.tensor([0, 2]), torch.tensor([1, 3])]
x.index_add(1, torch.tensor([0, 2]), x[:, :2]) | x.take_along_dim(x.argsort(1), 1)
x.gather(1, x.argsort(1)) | x.scatter(1, x.argsort(1), y)
x.scatter(1, x.argsort(1), 2.0) | x.scatter_add(1, x.argsort(1), y)
x.scatter_reduce(1, x.argsort(1), y, "amax")
x.index_put((torch.tensor([0, 1]),), torch.tensor(1.0)) | assigned(x)
assigned_slice(x, y) | torch.cat([x, y], 1) | torch.stack([x, y], -1)
torch.hstack([x, y]) | torch.dstack([x, y]) | x.split(2, 1) | x.split([1, 3], 1)
x.chunk(3, 2) | x.tensor_split(3, 2) | x.unbind(1) | x.narrow(1, 1, 3) | x[:, 1:-1:2]
x[..., -1] | x[:, None] | x[:, :1].expand(-1, 4, -1) | x[:, :1].expand_as(y)
x.repeat(2, 1, 3) | x.tile(2, 2) | x.repeat_interleave(3, 1) | x.roll((1, -2), (1, 2))
x.flip(1, 2) | x.rot90(1, (1, 2)) | x.permute(2, 0, 1) | x.transpose(1, -1)
x.movedim(0, 2) | x.mT | x.reshape(x.shape[0], -1) | x.flatten(1) | x.view(-1, 28)
x.unflatten(2, (7, 1)) | x.unfold(1, 3, 1) | x.diagonal(1, 1, 2) | torch.diag_embed(x)
x.tril(1) | x.triu(-1) | torch.meshgrid(x[0, 0], x[0, 1], indexing="ij")
F.pad(x, (1, 2, 0, 1)) | F.pad(x, (1, 2), mode="reflect") | F.pad(x, (-1, 2))
torch.einsum("bij,bkj->bik", x, y) | x @ y.mT
torch.tensordot(x, y, dims=([1, 2], [1, 2]))
torch.baddbmm(x[:, :, :4], x, y.mT, beta=0.5, alpha=2)
torch.addmm(x[0, :, 0], x[0], y[0].T) | torch.addcmul(x, x, y, value=0.3)
torch.lerp(x, y, 0.3) | torch.cdist(x, y) | x.sum() + torch.arange(x.shape[0])
torch.full((x.shape[0], 2), 2.5) | torch.zeros_like(x)
torch.eye(x.shape[0], 3) + x[0, 0, 0] | torch.linspace(0, 1, 5) + x[0, 0, 0]
torch.div(x, 2, rounding_mode="floor") | x // 2 | x % 2 | 2**x | 1 - x | 1 / (x + 9)
x**3 | x.round(decimals=2) | x.softmax(-1, dtype=torch.float64) | x.to(torch.float16)
x.long() | (x + 1).mul_(2) | (x + 1).add_(y, alpha=2) | F.relu(x + 1, inplace=True)
x.double() | ~(x > 0) & (x < 1) | (x > 2) ^ (y > 0) | (x.long() << 2) >> 1 | x.int() ^ 3
x * (x.shape[0] ** 2) | x * x.sum().item() | x[:, : x.shape[1] // 2] | x / x.shape[0]
F.normalize(x, dim=1) | F.one_hot(x.argmax(-1), 7) | F.cosine_similarity(x, y, -1)
F.scaled_dot_product_attention(x[:, None], y[:, None], y[:, None], is_causal=True)
F.gelu(x) | F.silu(x) * y | x * torch.sigmoid(1.702 * x) | F.layer_norm(x, (7,))
torch.atan2(x, y) | torch.hypot(x, y) | torch.logaddexp(x, y) | torch.fmod(x, y)
x.frac() | torch.cond(x.sum() > 0, lambda z: z + 1, lambda z: z - 1, (x,)) | x.expm1()
x.log1p() | without_gradient(x) | autocast(x, y) | x.nan_to_num(1.0) | torch.isfinite(x)
x.sinc() | torch._higher_order_ops.map(lambda z: z * 2, x) | looped(x) | scanned(x)
F.grid_sample(x[:, :, None], y[:, :3, None, :2].clamp(-1, 1), align_corners=False)
F.interpolate(x, scale_factor=2.0, mode="linear") | F.avg_pool1d(x, 2)
F.glu(x[..., :6]) | torch.view_as_real(torch.fft.rfft(x))
torch.linalg.inv(x[:, :, :4] + torch.eye(4) * 9) | torch.linalg.svdvals(x) | x.cummax(1)
matrix_parts(*torch.linalg.svd(x, full_matrices=False)) | torch.linalg.pinv(x)
matrix_parts(*torch.linalg.svd(x)[:2]) | torch.linalg.qr(x)[1].abs() | torch.svd(x)[1]
torch.linalg.eigh(x @ x.mT)[0] | torch.logdet(x @ x.mT + torch.eye(4))
torch.linalg.solve(x[:, :, :4] + 9 * torch.eye(4), y) | torch.matrix_exp(x @ y.mT / 9)
torch.lgamma(x) | torch.bincount(x.argmax(-1).flatten())
"""
NAMES = """
abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad erf erfc exp exp2 expm1
floor log log10 log1p log2 logit neg positive reciprocal round rsqrt sigmoid sign sin
sinh sqrt square tan tanh trunc isnan isinf sum mean prod std var amax argmax argmin
median ravel logical_not any all count_nonzero relu clone float half int bool bfloat16
detach nansum t
"""


def functions() -> Iterator[Entry]:
    """Yield sources, their functions, and inputs."""
    x, y = drawn(SIZE, 4, 7), drawn(SIZE, 4, 7).flip(0) * 0.5
    for text in (part.strip() for part in TEXTS.replace("\n", " | ").split(" | ")):
        if text:
            yield text, function(text), (x, y)
    for name in NAMES.split():
        text = f"x.{name}()"
        yield text, function(text), (x[:, 0].abs() * 0.3 + 0.1,)


def function(text: str) -> Any:
    """Return the function of ``x`` and ``y`` with a source of this file."""
    import torch
    from torch.nn import functional

    plain_ones = (assigned, assigned_slice, without_gradient, autocast)
    helpers: tuple[Any, ...] = (*plain_ones, looped, scanned, matrix_parts)
    helpers_by_name = {helper.__name__: helper for helper in helpers}
    scope = {"torch": torch, "F": functional, **helpers_by_name}
    output = eval(f"lambda x, y=None: {text}", scope)

    def plain(*given: Any) -> Any:
        result = output(*given)
        return tuple(result) if isinstance(result, tuple) else result

    return plain if " y" in text or "(y" in text else lambda x, *_: plain(x)


def matrix_parts(left: Any, values: Any, right: Any = None) -> Any:
    """Return functions of singular vectors that do not depend on their signs."""
    if right is None:
        return left @ left.mT, values
    return (left * values.tanh()[..., None, :]) @ right, values


def assigned(x: Any) -> Any:
    out = x.clone()
    out[:, 1] = 2.0
    return out


def assigned_slice(x: Any, y: Any) -> Any:
    out = x.clone()
    out[:, 1:3, 0] = y[:, :2, 1]
    return out


def without_gradient(x: Any) -> Any:
    import torch

    with torch.no_grad():
        doubled = x * 2
    return doubled + x


def autocast(x: Any, y: Any) -> Any:
    import torch

    with torch.autocast("cpu", torch.bfloat16):
        return x @ y.mT


def looped(x: Any) -> Any:
    import torch

    loop = torch._higher_order_ops.while_loop
    start = (torch.tensor(0), x)
    return loop(lambda i, z: i < 3, lambda i, z: (i + 1, z * 2), start)[1]


def scanned(x: Any) -> Any:
    from torch._higher_order_ops.scan import scan

    return scan(lambda state, z: (state + z, state * 2), x[0], x)
