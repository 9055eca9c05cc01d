"""Templates of statements: calls, methods, indexing, layers and usual idioms.

A template starts with the ranks that its operand can have, or with ``*`` for any.
``{x}`` is that operand, ``{y}`` another float tensor, ``{i}`` integers, ``{m}`` a mask,
``{s}`` a layer of the line before ``=>``, ``{d}`` and ``{e}`` axes of the operand,
``{C}`` its last extent, ``{c}`` that of axis 1, ``{n}`` 1 to 4, ``{w}`` 2, 4 or 8, and
``{f}`` a number. A statement that fails, or is not finite, is dropped by the writer.
"""

from __future__ import annotations

#: Expressions of one float tensor.
UNARY = (
    "torch.relu({x})",
    "F.gelu({x})",
    "F.gelu({x}, approximate='tanh')",
    "F.silu({x})",
    "F.mish({x})",
    "F.hardswish({x})",
    "F.hardsigmoid({x})",
    "F.hardtanh({x}, -{f}, {f})",
    "F.leaky_relu({x}, {f})",
    "F.elu({x}, {f})",
    "F.celu({x}, {f})",
    "F.selu({x})",
    "F.softplus({x}, beta=2.0)",
    "F.softsign({x})",
    "F.tanhshrink({x})",
    "F.softshrink({x}, {f})",
    "F.hardshrink({x}, {f})",
    "F.threshold({x}, {f}, 0.5)",
    "F.logsigmoid({x})",
    "F.relu6({x})",
    "torch.sigmoid({x})",
    "{x}.tanh()",
    "{x}.sin() * {f}",
    "torch.cos({x} * {f})",
    "torch.exp(-{x}.abs())",
    "{x}.abs().sqrt()",
    "({x} ** 2 + {f}).rsqrt()",
    "torch.log1p({x}.abs())",
    "torch.expm1({x}.clamp(max=2))",
    "torch.atan({x})",
    "torch.atan2({x}, {x} * 0 + 1.5)",
    "torch.erf({x})",
    "{x}.square()",
    "{x}.pow(3)",
    "{x}.neg()",
    "{x}.sign() * {x}",
    "torch.where({x} > 0, {x}, {x} * {f})",
    "{x}.clamp(-{f}, {f})",
    "{x}.clamp(min=-{f})",
    "torch.clip({x}, max={f})",
    "1 - {x}",
    "{f} * {x} + 1",
    "{x} / ({f} + {x}.abs())",
    "2.0 / (1.0 + torch.exp(-{x}))",
    "torch.nan_to_num({x})",
    "{x}.float()",
    "{x}.double().float()",
    "{x}.detach() + {x}",
    "{x}.type_as({y})",
    "{x}.contiguous()",
    "{x}.clone()",
    "torch.frac({x})",
    "torch.sinc({x})",
    "torch.special.expit({x})",
    "torch.logaddexp({x}, -{x})",
    "torch.hypot({x}, {x} + 1)",
    "torch.lerp({x}, -{x}, {f})",
    "torch.addcmul({x}, {x}, {x}, value={f})",
    "torch.addcdiv({x}, {x}, {x}.abs() + 1, value={f})",
    "torch.maximum({x}, -{x})",
    "torch.fmod({x}, {f})",
    "torch.remainder({x}, {f})",
    "{x}.masked_fill({x} > {f}, {f})",
    "{x}.masked_fill({x} < 0, -1e4).clamp(min=-2)",
)
#: Expressions of two float tensors, or of one and its extents.
BINARY = (
    "{x} + {y}",
    "{x} - {y} * {f}",
    "{x} * {y}",
    "{x} / ({y}.abs() + {f})",
    "torch.maximum({x}, {y})",
    "torch.minimum({x}, {y})",
    "torch.where({x} > {y}, {x}, {y})",
    "torch.where({m}, {x}, {y})",
    "torch.cat([{x}, {y}], dim={d})",
    "torch.cat(({x}, {x}, {y}), {d})",
    "torch.stack([{x}, {y}], dim={d})",
    "torch.stack(({x}, {x} * 2), -1)",
    "torch.matmul({x}, {y})",
    "{x} @ {y}.transpose(-1, -2)",
    "torch.softmax({x} @ {y}.transpose(-2, -1) / {w}, -1)",
    "F.cosine_similarity({x}, {y}, dim={d})",
    "torch.cdist({x}, {y} + 2)",
    "F.pairwise_distance({x}, {y})",
    "({x} - {y}).pow(2).mean({d})",
    "F.mse_loss({x}, {y}, reduction='none')",
    "F.smooth_l1_loss({x}, {y}, reduction='none')",
    "torch.einsum('bij,bkj->bik', {x}, {y})",
    "torch.einsum('...i,...i->...', {x}, {y})",
    "torch.bmm({x}, {y})",
    "torch.baddbmm({x}, {x}, {y}, beta={f})",
    "{x}.masked_fill({m}, {f})",
    "{x} * {m}",
    "{x} * torch.sigmoid({y})",
    "torch.lerp({x}, {y}, {f})",
    "{x}.expand_as({y}) + {y}",
    "{x}.view_as({y})",
    "torch.broadcast_tensors({x}, {y})[0]",
    "{x}[..., :1] * {y}",
    "{x}.unsqueeze({d}) * {y}.unsqueeze(-1)",
    "torch.outer({x}, {y})",
    "{x} if {x}.shape[-1] > 2 else {x} + {y}",
    "torch.addmm({y}, {x}, {x}.t())",
    "F.bilinear({x}, {y}, torch.ones(3, {x}.shape[-1], {y}.shape[-1]) * 0.1)",
    "torch.kron({x}, {y}) * {f}",
)
#: Expressions that move, select or reduce elements: ranks, then the text.
SHAPES = (
    ("2345", "{x}.transpose({d}, {e})"),
    ("3", "{x}.permute(0, 2, 1)"),
    ("3", "{x}.permute(2, 0, 1)"),
    ("4", "{x}.permute(0, 2, 3, 1)"),
    ("4", "{x}.permute(0, 3, 1, 2)"),
    ("4", "torch.movedim({x}, 1, -1)"),
    ("4", "{x}.flatten(2)"),
    ("4", "{x}.flatten(2).transpose(1, 2)"),
    ("345", "{x}.flatten(1)"),
    ("345", "torch.flatten({x}, 0, 1)"),
    ("345", "{x}.view({x}.size(0), -1)"),
    ("345", "{x}.reshape({x}.shape[0], -1, {C})"),
    ("345", "{x}.reshape(-1, {x}.shape[-1])"),
    ("34", "{x}.unflatten(-1, (2, -1))"),
    ("34", "{x}.unflatten(1, (-1, 2))"),
    ("3", "{x}.reshape({x}.shape[0], {x}.shape[1], 2, {x}.shape[2] // 2)"),
    ("3", "{x}.view(*{x}.shape[:-1], 2, -1).transpose(1, 2)"),
    ("4", "{x}.transpose(1, 2).reshape({x}.size(0), {x}.size(2), -1)"),
    ("2345", "{x}.unsqueeze({d})"),
    ("*", "{x}[None]"),
    ("*", "{x}[..., None]"),
    ("345", "{x}.squeeze({d})"),
    ("2345", "{x}.narrow({d}, 0, {n})"),
    ("2345", "{x}.select({d}, -1)"),
    ("2345", "{x}[:, 0]"),
    ("2345", "{x}[:, -1]"),
    ("2345", "{x}[:, 1:]"),
    ("2345", "{x}[:, :-1]"),
    ("2345", "{x}[:, ::2]"),
    ("2345", "{x}[..., ::2] * {x}[..., 1::2]"),
    ("2345", "{x}[..., :{n}]"),
    ("2345", "{x}[..., -{n}:]"),
    ("345", "{x}[:, {n}:, :-{n}]"),
    ("345", "{x}[:, None, 0]"),
    ("4", "{x}[:, :, 1:, 1:] - {x}[:, :, :-1, :-1]"),
    ("4", "{x}[:, :, ::2, 1::2]"),
    ("2345", "{x}[:, torch.arange({x}.shape[1] - 1, -1, -1)]"),
    ("2345", "{x}[:, [0, -1]]"),
    ("345", "{x}[torch.arange({x}.shape[0]), {i}.clamp(0, 1)]"),
    ("2345", "{x}.chunk(2, dim={d})[1]"),
    ("2345", "torch.cat({x}.chunk(2, {d})[::-1], {d})"),
    ("2345", "{x}.split({n}, {d})[0]"),
    ("2345", "torch.stack({x}.unbind({d}), {e})"),
    ("2345", "{x}.unbind({d})[0]"),
    ("2345", "torch.tensor_split({x}, 2, {d})[-1]"),
    ("2345", "{x}.flip({d})"),
    ("2345", "torch.roll({x}, {n}, {d})"),
    ("4", "torch.roll({x}, (-1, 1), (2, 3))"),
    ("4", "torch.rot90({x}, 1, (2, 3))"),
    ("23", "{x}.repeat({n}, *[1] * ({x}.dim() - 1))"),
    ("2345", "torch.tile({x}, (2,))"),
    ("2345", "{x}.repeat_interleave({n}, dim={d})"),
    ("23", "{x}.unsqueeze(1).expand(-1, {n}, *[-1] * ({x}.dim() - 1))"),
    ("2345", "torch.tril({x})"),
    ("2345", "torch.triu({x}, diagonal=1)"),
    ("2345", "torch.diagonal({x}, 0, -2, -1)"),
    ("23", "torch.diag_embed({x})"),
    ("2345", "{x}.mean({d})"),
    ("2345", "{x}.mean({d}, keepdim=True)"),
    ("345", "{x}.mean((-1, -2))"),
    ("345", "{x}.mean(dim=(1, -1), keepdim=True)"),
    ("2345", "{x}.sum({d}) * {f}"),
    ("2345", "{x}.amax({d}, keepdim=True)"),
    ("2345", "{x}.amin({d})"),
    ("2345", "{x}.max(dim={d})[0]"),
    ("2345", "{x}.min({d}, keepdim=True).values"),
    ("2345", "{x}.std({d}, keepdim=True)"),
    ("2345", "{x}.var({d}, unbiased=False)"),
    ("2345", "torch.var_mean({x}, {d}, keepdim=True)[0]"),
    ("2345", "{x}.norm(dim={d})"),
    ("2345", "{x}.norm(p=1, dim={d}, keepdim=True) * 0.1"),
    ("2345", "torch.linalg.vector_norm({x}, dim={d})"),
    ("2345", "F.normalize({x}, dim={d})"),
    ("2345", "torch.logsumexp({x}, {d})"),
    ("2345", "torch.softmax({x}, {d})"),
    ("2345", "F.log_softmax({x}, dim={d})"),
    ("2345", "F.softmin({x}, {d})"),
    ("2345", "torch.cumsum({x}, {d}) * {f}"),
    ("2345", "torch.cumprod({x}.tanh(), {d})"),
    ("2345", "{x}.cummax({d})[0]"),
    ("2345", "torch.logcumsumexp({x}, {d})"),
    ("2345", "torch.prod({x}.tanh(), {d})"),
    ("2345", "{x}.sort({d}, descending=True)[0]"),
    ("2345", "{x}.topk({n}, {d})[0]"),
    ("2345", "{x}.median({d})[0]"),
    ("2345", "{x}.kthvalue({n}, {d})[0]"),
    ("2345", "{x}.gather({d}, {x}.argsort({d}, stable=True))"),
    ("2345", "{x}.index_select({d}, torch.tensor([0, 1, 0]))"),
    ("2345", "torch.take_along_dim({x}, {x}.argmax({d}, keepdim=True), {d})"),
    ("2345", "{x} - {x}.mean({d}, keepdim=True)"),
    ("2345", "({x} - {x}.mean(-1, True)) / ({x}.std(-1, keepdim=True) + {f})"),
    ("2345", "{x} * torch.rsqrt({x}.pow(2).mean(-1, keepdim=True) + 1e-6)"),
    ("2345", "{x} / {x}.norm(dim=-1, keepdim=True).clamp(min=1e-6)"),
    ("2345", "F.glu({x}, {d})"),
    ("2345", "F.pad({x}, (1, {n}))"),
    ("345", "F.pad({x}, (0, 0, 1, 0), value={f})"),
    ("4", "F.pad({x}, (1, 1, 1, 1), mode='reflect')"),
    ("4", "F.pad({x}, (1, 0, 2, 1), mode='replicate')"),
    ("34", "F.pad({x}, (1, 1), mode='circular')"),
    ("2345", "F.pad({x}, (-1, 0))"),
    ("4", "F.interpolate({x}, scale_factor=2)"),
    ("4", "F.interpolate({x}, scale_factor=2, mode='bilinear', align_corners=False)"),
    ("4", "F.interpolate({x}, size=(5, 7), mode='bilinear', align_corners=True)"),
    ("4", "F.interpolate({x}, size=(6, 6), mode='bicubic', align_corners=False)"),
    ("4", "F.interpolate({x}, scale_factor=0.5, mode='area')"),
    ("3", "F.interpolate({x}, scale_factor=1.5, mode='linear')"),
    ("4", "F.avg_pool2d({x}, 2)"),
    ("4", "F.avg_pool2d({x}, 3, stride=1, padding=1, count_include_pad=False)"),
    ("4", "F.max_pool2d({x}, 3, 2, 1)"),
    ("4", "F.max_pool2d({x}, 2, ceil_mode=True)"),
    ("4", "F.lp_pool2d({x}.abs() + 0.1, 2, 2)"),
    ("4", "F.adaptive_avg_pool2d({x}, 1)"),
    ("4", "F.adaptive_avg_pool2d({x}, (2, 3))"),
    ("4", "F.adaptive_max_pool2d({x}, 2)"),
    ("4", "F.pixel_shuffle({x}, 2)"),
    ("4", "F.pixel_unshuffle({x}, 2)"),
    ("4", "F.channel_shuffle({x}, 2)"),
    ("4", "F.unfold({x}, 2, stride=2)"),
    ("4", "F.unfold({x}, (3, 3), padding=1)"),
    ("4", "F.local_response_norm({x}, 2)"),
    ("4", "F.instance_norm({x})"),
    ("4", "F.grid_sample({x}, F.affine_grid(torch.tensor([[[0.9, 0.1, 0.0], "
     "[-0.1, 0.8, 0.1]]]).expand({x}.shape[0], -1, -1), {x}.shape, "
     "align_corners=False), align_corners=False)"),
    ("3", "F.avg_pool1d({x}, 2)"),
    ("3", "F.max_pool1d({x}, 3, 1, 1)"),
    ("3", "F.adaptive_avg_pool1d({x}, 2)"),
    ("3", "{x}.unfold(1, 2, 1)"),
    ("2345", "{x}.unfold(-1, 2, 2)"),
    ("2345", "F.layer_norm({x}, {x}.shape[-1:])"),
    ("345", "F.layer_norm({x}, {x}.shape[1:])"),
    ("2345", "F.rms_norm({x}, ({C},))"),
    ("345", "F.group_norm({x}, 1)"),
    ("34", "F.scaled_dot_product_attention({x}, {x}, {x})"),
    ("34", "F.scaled_dot_product_attention({x}, {x}, {x}, is_causal=True)"),
    ("34", "F.scaled_dot_product_attention({x}, {x} * 2, {x} + 1, scale={f})"),
    ("345", "torch.fft.rfft({x}, dim=-1).abs()"),
    ("345", "torch.fft.fft2({x}).real * 0.1"),
    ("345", "torch.fft.irfft(torch.fft.rfft({x}, dim=-1), n={C}, dim=-1)"),
    ("2345", "torch.diff({x}, dim={d})"),
    ("2345", "torch.trapezoid({x}, dim={d})"),
    ("3", "torch.cross({x}[..., :3], {x}[..., -3:], dim=-1)"),
    ("3", "torch.linalg.solve({x} @ {x}.mT + torch.eye({x}.shape[1]), {x})"),
    ("3", "torch.linalg.inv({x} @ {x}.mT + torch.eye({x}.shape[1]))"),
    ("3", "torch.linalg.cholesky({x} @ {x}.mT + torch.eye({x}.shape[1]))"),
    ("3", "torch.det({x} @ {x}.mT * 0.1 + torch.eye({x}.shape[1]))"),
    ("2345", "{x} + torch.arange({x}.shape[{d}], dtype=torch.float32).mean()"),
    ("2345", "{x} * torch.linspace(0, 1, {x}.shape[-1])"),
    ("345", "{x} + torch.arange({x}.shape[1]).view(-1, *[1] * ({x}.dim() - 2))"),
    ("2345", "{x} + {x}.new_zeros({x}.shape[-1])"),
    ("2345", "{x} + torch.full_like({x}, {f})"),
    ("2345", "{x} * {x}.new_ones(1).expand({x}.shape[-1])"),
    ("2345", "{x} + torch.eye({x}.shape[-2], {x}.shape[-1])"),
    ("345", "torch.zeros({x}.shape[0], {n}, {x}.shape[2]) + {x}[:, :1]"),
    ("2345", "{x}.masked_fill(torch.ones({x}.shape[-2:]).triu(1).bool(), -{f})"),
    ("2345", "{x}.scatter({d}, {x}.argmax({d}, keepdim=True), {f})"),
    ("2345", "torch.zeros_like({x}).scatter_add({d}, {x}.argsort({d}, stable=True), {x})"),
    ("2345", "torch.zeros_like({x}).index_add(1, torch.tensor([0, 1]), {x}[:, :2])"),
    ("2345", "{x}.index_fill({d}, torch.tensor([0]), {f})"),
    ("2345", "{x}.index_copy(1, torch.tensor([1]), {x}[:, :1])"),
    ("23", "F.one_hot({x}.argmax(-1), {C}).float()"),
    ("2345", "torch.bucketize({x}, torch.tensor([-1.0, 0.0, {f}])).float()"),
    ("2345", "({x} > {f}).float()"),
    ("2345", "({x} > 0).any({d}).float()"),
    ("2345", "(({x} > -1) & ({x} < {f})).to({x}.dtype)"),
    ("2345", "{x}.argmax({d}).float() * {f}"),
    ("2345", "{x}.round().long().float()"),
    ("2345", "({x} * 4).floor() / 4"),
    ("2345", "torch.count_nonzero({x} > 0, dim={d}).float() * {f}"),
    ("2345", "{x}.sum() * {f} + {x}"),
    ("2345", "{x} / {x}.abs().max()"),
    ("2345", "{x}.swapaxes({d}, {e}).mean(-1)"),
    ("2345", "torch.atleast_3d({x})"),
    ("2345", "torch.hstack([{x}, {x} + 1])"),
    ("2345", "torch.vstack(({x}, {x}))"),
    ("2345", "torch.block_diag({x}[0, :2].reshape(2, -1), {x}[1, :2].reshape(2, -1))"),
    ("2345", "torch.meshgrid({x}.flatten()[:3], {x}.flatten()[:2], indexing='ij')[0]"),
    ("2345", "{x} * (torch.arange({x}.size(-1)) % 2 == 0)"),
    ("345", "torch.tensordot({x}, {x}[0].mean(0), dims=([-1], [-1]))"),
    ("2345", "{x}.half().float()"),
    ("2345", "{x}.bfloat16().float()"),
    ("345", "{x}.mT"),
    ("2345", "torch.quantile({x}, 0.5, dim={d})"),
    ("2345", "torch.renorm({x}, 2, 0, 1.0)"),
    ("2345", "{x}.ravel()[:{n}]"),
)
#: Layers, with the ranks of their operand, and how they are called.
LAYERS = (
    ("2345", "nn.Linear({C}, {w})"),
    ("2345", "nn.Linear({C}, {C}, bias=False)"),
    ("2345", "nn.Linear({C}, 3 * {w})"),
    ("2345", "nn.LayerNorm({C})"),
    ("2345", "nn.LayerNorm({C}, eps=1e-3, elementwise_affine=False)"),
    ("2345", "nn.LayerNorm({C}, bias=False)"),
    ("2345", "nn.RMSNorm({C})"),
    ("2345", "nn.Identity()"),
    ("2345", "nn.Dropout(0.2)"),
    ("2345", "nn.GELU()"),
    ("2345", "nn.ReLU()"),
    ("2345", "nn.PReLU()"),
    ("4", "nn.PReLU({c})"),
    ("4", "nn.Conv2d({c}, {w}, 3, padding=1)"),
    ("4", "nn.Conv2d({c}, {w}, 1)"),
    ("4", "nn.Conv2d({c}, {w}, 3, stride=2, padding=1, bias=False)"),
    ("4", "nn.Conv2d({c}, {c}, 3, padding=1, groups={c})"),
    ("4", "nn.Conv2d({c}, 2 * {c}, 3, padding='same', groups={c})"),
    ("4", "nn.Conv2d({c}, {w}, (1, 3), padding=(0, 2), dilation=(1, 2))"),
    ("4", "nn.Conv2d({c}, {w}, 3, padding=1, padding_mode='reflect')"),
    ("4", "nn.ConvTranspose2d({c}, {w}, 2, stride=2)"),
    ("4", "nn.ConvTranspose2d({c}, {w}, 3, 2, 1, output_padding=1)"),
    ("4", "nn.BatchNorm2d({c})"),
    ("4", "nn.BatchNorm2d({c}, affine=False)"),
    ("4", "nn.InstanceNorm2d({c}, affine=True)"),
    ("4", "nn.GroupNorm(2, {c})"),
    ("4", "nn.MaxPool2d(2)"),
    ("4", "nn.AvgPool2d(2, padding=1)"),
    ("4", "nn.AdaptiveAvgPool2d(1)"),
    ("4", "nn.Upsample(scale_factor=2, mode='nearest')"),
    ("4", "nn.ZeroPad2d(1)"),
    ("4", "nn.ReflectionPad2d((1, 0, 1, 0))"),
    ("4", "nn.Dropout2d(0.1)"),
    ("4", "nn.Sequential(nn.Conv2d({c}, {w}, 3, padding=1), nn.BatchNorm2d({w}), nn.ReLU())"),
    ("4", "nn.utils.parametrizations.weight_norm(nn.Conv2d({c}, {w}, 1))"),
    ("3", "nn.Conv1d({c}, {w}, 3, padding=1)"),
    ("3", "nn.Conv1d({c}, {w}, 1)"),
    ("3", "nn.Conv1d({c}, {w}, 2, padding=1, dilation=2)"),
    ("3", "nn.ConvTranspose1d({c}, {w}, 2, 2)"),
    ("3", "nn.BatchNorm1d({c})"),
    ("2", "nn.BatchNorm1d({C})"),
    ("3", "nn.GroupNorm(1, {c})"),
    ("3", "nn.InstanceNorm1d({c})"),
    ("2345", "nn.Sequential(nn.Linear({C}, {w}), nn.GELU(), nn.Linear({w}, {C}))"),
    ("2345", "nn.Sequential(nn.LayerNorm({C}), nn.Linear({C}, 2 * {C}), nn.SiLU(), "
     "nn.Dropout(0.1), nn.Linear(2 * {C}, {C}))"),
    ("2345", "nn.utils.parametrizations.weight_norm(nn.Linear({C}, {w}))"),
    ("3", "nn.TransformerEncoderLayer({C}, 2, 2 * {C}, batch_first=True)"),
    ("3", "nn.TransformerEncoderLayer({C}, 1, {C}, norm_first=True, activation='gelu')"),
    ("5", "nn.Conv3d({c}, {w}, 3, padding=1)"),
    ("2", "nn.Bilinear({C}, {C}, {w}) => {s}({x}, {x} + 1)"),
    ("3", "nn.LSTM({C}, {w}, batch_first=True) => {s}({x})[0]"),
    ("3", "nn.LSTM({C}, {w}, 2, bidirectional=True) => {s}({x})[0]"),
    ("3", "nn.LSTM({C}, {w}, batch_first=True) => {s}({x})[1][0][-1]"),
    ("3", "nn.GRU({C}, {w}, batch_first=True, bias=False) => {s}({x})[0]"),
    ("3", "nn.GRU({C}, {w}, bidirectional=True) => {s}({x})[1]"),
    ("3", "nn.RNN({C}, {w}, nonlinearity='relu') => {s}({x})[0]"),
    ("2", "nn.GRUCell({C}, {w}) => {s}({x})"),
    ("2", "nn.LSTMCell({C}, {w}) => {s}({x})[0]"),
    ("3", "nn.MultiheadAttention({C}, 2, batch_first=True) => {s}({x}, {x}, {x})[0]"),
    ("3", "nn.MultiheadAttention({C}, 1) => {s}({x}, {x}, {x}, need_weights=False)[0]"),
    ("3", "nn.MultiheadAttention({C}, 2, batch_first=True) => "
     "{s}({x}, {x}, {x}, average_attn_weights=False)[1]"),
    ("i", "nn.Embedding(16, {w}) => {s}({i}.abs() % 16)"),
    ("i", "nn.Embedding(16, {w}, padding_idx=0) => {s}({i} % 16)"),
    ("i", "nn.EmbeddingBag(16, {w}) => {s}({i} % 16)"),
    ("2345", "nn.Parameter(torch.randn({C})) => {x} * {s}"),
    ("2345", "nn.Parameter(torch.randn({C}, {w}) * 0.3) => {x} @ {s}"),
    ("345", "nn.Parameter(torch.zeros(1, 1, {C})) => torch.cat([{s}.expand("
     "{x}.shape[0], -1, -1), {x}], 1)"),
    ("345", "nn.Parameter(torch.randn(1, 16, {C})) => {x} + {s}[:, :{x}.shape[1]]"),
    ("2345", "nn.Parameter(torch.tensor({f})) => {x} * {s}.exp()"),
    ("4", "nn.Parameter(torch.randn({w}, {c}, 1, 1) * 0.3) => F.conv2d({x}, {s})"),
    ("2345", "nn.Parameter(torch.randn({w}, {C}) * 0.3) => F.linear({x}, F.normalize({s}, dim=-1))"),
    ("2345", "nn.Parameter(torch.randn({C})) => F.layer_norm({x}, ({C},), {s})"),
    ("345", "nn.ParameterList([nn.Parameter(torch.randn({C})) for _ in range(2)]) => "
     "{x} * {s}[0] + {s}[1]"),
    ("2345", "nn.ModuleList([nn.Linear({C}, {w}) for _ in range(3)]) => "
     "torch.stack([layer({x}) for layer in {s}], 1)"),
    ("2345", "nn.ModuleList([nn.Linear({C}, {w}) for _ in range(3)]) => "
     "sum(layer({x}) for layer in {s})"),
    ("2345", "nn.ModuleDict({{'a': nn.Linear({C}, {w}), 'b': nn.Linear({C}, {w})}}) => "
     "{s}['a']({x}) * torch.sigmoid({s}['b']({x}))"),
)
#: Idioms of several lines, which assign ``out``.
IDIOMS = (
    ("3", "nn.Linear({C}, 3 * {C})", """\
b, t, c = {x}.shape
q, k, v = {s}({x}).chunk(3, dim=-1)
q, k, v = (z.view(b, t, 2, c // 2).transpose(1, 2) for z in (q, k, v))
scores = q @ k.transpose(-2, -1) * (c // 2) ** -0.5
scores = scores.masked_fill(torch.ones(t, t).tril() == 0, float('-inf'))
out = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c)"""),
    ("3", "nn.Linear({C}, 3 * {C}, bias=False)", """\
b, n, c = {x}.shape
qkv = {s}({x}).reshape(b, n, 3, 2, c // 2).permute(2, 0, 3, 1, 4)
q, k, v = qkv.unbind(0)
out = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, c)"""),
    ("3", "nn.Linear({C}, {C})", """\
state = {x}.new_zeros({x}.shape[0], {C})
outputs = []
for step in range(3):
    state = torch.tanh({s}({x}[:, step % 2] + state))
    outputs.append(state)
out = torch.stack(outputs, dim=1)"""),
    ("4", "nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d({c}, {w}, 1), nn.ReLU(), "
     "nn.Conv2d({w}, {c}, 1), nn.Sigmoid())", "out = {x} * {s}({x})"),
    ("4", "nn.Linear({c}, {c})", """\
gate = torch.sigmoid({s}({x}.mean((2, 3))))
out = {x} * gate[:, :, None, None]"""),
    ("3", "nn.Parameter(torch.randn({C}))", """\
x1, x2 = {x}[..., : {C} // 2], {x}[..., {C} // 2 :]
angle = torch.arange({x}.shape[1])[:, None] * 0.5 ** torch.arange({C} // 2)
out = torch.cat((x1 * angle.cos() - x2 * angle.sin(), x1 * angle.sin() + x2 * angle.cos()), -1)
out = out * {s}"""),
    ("2345", "nn.Identity()", """\
out = {x}.clone()
out[:, 0] = {s}({x})[:, 0] * 2"""),
    ("345", "nn.Identity()", """\
shifted = {s}({x})
out = {x} * 1
out[:, 1:] += shifted[:, :-1]
out[..., -1] = 0.5"""),
    ("2345", "nn.Linear({C}, {C})", """\
out = {s}({x})
out += {x}
out = out.mul_({f}).clamp_(min=-2)"""),
    ("2345", "nn.Identity()", """\
out = torch.zeros_like({x})
out[{x} > 0] = {f}
out = out + {s}({x})"""),
    ("4", "nn.Conv2d({c}, {c}, 3, padding=1)", """\
features = [{x}]
for _ in range(2):
    features.append(F.relu({s}(features[-1])))
out = torch.cat(features, 1)"""),
    ("4", "nn.Conv2d({c}, {c}, 1)", """\
b, c, h, w = {x}.shape
windows = {x}.view(b, c, h // 2, 2, w // 2, 2).permute(0, 2, 4, 3, 5, 1).reshape(-1, 4, c)
windows = windows + windows.mean(1, keepdim=True)
out = windows.view(b, h // 2, w // 2, 2, 2, c).permute(0, 5, 1, 3, 2, 4).reshape(b, c, h, w)
out = {s}(out)"""),
    ("2345", "nn.Linear({C}, {C})", """\
if {x}.shape[-1] % 2 == 0:
    out = {s}({x})
else:
    out = {x} * 2"""),
    ("3", "nn.Linear({C}, 4)", """\
weights = {s}({x}).softmax(-1)
values, indices = weights.topk(2, dim=-1)
mask = torch.zeros_like(weights).scatter(-1, indices, values)
out = {x}.unsqueeze(-1) * mask.unsqueeze(-2)
out = out.sum(-1)"""),
    ("3", "nn.Parameter(torch.randn({w}, {C}))", """\
distance = ({x}.unsqueeze(2) - {s}).pow(2).sum(-1)
codes = distance.argmin(-1)
out = {x} + (F.embedding(codes, {s}) - {x}).detach()"""),
    ("3", "nn.GRUCell({C}, {C})", """\
hidden = torch.zeros({x}.size(0), {C})
for position in range({x}.size(1)):
    hidden = {s}({x}[:, position], hidden)
out = hidden"""),
    ("345", "nn.Parameter(torch.ones({C}))", """\
mean = {x}.mean(-1, keepdim=True)
variance = {x}.var(-1, keepdim=True, unbiased=False)
out = ({x} - mean) / torch.sqrt(variance + 1e-5) * {s}"""),
    ("2345", "nn.ModuleList([nn.Sequential(nn.Linear({C}, {C}), nn.Tanh()) for _ in range(3)])",
     """\
out = {x}
for layer in {s}:
    out = out + layer(out)"""),
    ("3", "nn.Linear({C}, 1)", """\
weight = torch.softmax({s}({x}), dim=1)
out = (weight * {x}).sum(dim=1)"""),
    ("3", "nn.Identity()", """\
lengths = torch.full(({x}.shape[0],), {x}.shape[1]) - 1
mask = torch.arange({x}.shape[1])[None] < lengths[:, None]
out = ({x} * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
out = {s}(out)"""),
)
#: Expressions of integers, of a float tensor and of integers.
INTEGERS = (
    "{x}.argmax({d})",
    "{x}.argsort({d}, stable=True)",
    "({x} > 0).long()",
    "({x} * 3).long()",
    "({x} > {f}).sum({d})",
    "torch.arange({x}.shape[0])",
    "torch.searchsorted({x}.sort(-1)[0], {x})",
    "({x} * 5).int()",
)
INTEGERS_OF_INTEGERS = (
    "{i} + {n}",
    "{i} * 2 - 1",
    "{i} // 2",
    "{i} % 3",
    "{i}.clamp(0, {n})",
    "{i}.cumsum(-1)",
    "{i}.float()",
    "{i} / 2",
    "({i} == 1).float()",
    "{i}.flip(-1)",
    "{i}.unsqueeze(-1) - {i}.unsqueeze(-2)",
    "F.one_hot({i}.abs() % 5, 5)",
    "{i}.sum(-1)",
    "{i} & 3",
    "{i} ** 2",
    "{i}.to(torch.int32)",
    "torch.where({i} > 1, {i}, 0)",
    "{i}.float().mean(-1)",
    "{i}.max(-1)[0]",
    "-{i}",
)
MASKS = (
    "{x} > {f}",
    "{x} >= {y}",
    "{i} == 1",
    "~{m}",
    "{m} & ({x} > 0)",
    "({x} > 0).any({d}, keepdim=True)",
    "({x} > -{f}).all(-1)",
    "torch.isfinite({x})",
    "{x}.isnan()",
    "{i}.bool()",
    "torch.ones_like({x}, dtype=torch.bool)",
    "torch.logical_xor({x} > 0, {x} > {f})",
)
