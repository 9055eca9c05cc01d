"""Templates of layers and of usual idioms; see ``expressions``."""

from __future__ import annotations

#: Ranks of the operand, then the layer and how it is called.
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
    (
        "4",
        "nn.Sequential(nn.Conv2d({c}, {w}, 3, padding=1), nn.BatchNorm2d({w}), "
        "nn.ReLU())",
    ),
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
    (
        "2345",
        "nn.Sequential(nn.LayerNorm({C}), nn.Linear({C}, 2 * {C}), nn.SiLU(), "
        "nn.Dropout(0.1), nn.Linear(2 * {C}, {C}))",
    ),
    ("2345", "nn.utils.parametrizations.weight_norm(nn.Linear({C}, {w}))"),
    ("3", "nn.TransformerEncoderLayer({C}, 2, 2 * {C}, batch_first=True)"),
    (
        "3",
        "nn.TransformerEncoderLayer({C}, 1, {C}, norm_first=True, "
        "activation='gelu')",
    ),
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
    (
        "3",
        "nn.MultiheadAttention({C}, 2, batch_first=True) => {s}({x}, {x}, " "{x})[0]",
    ),
    (
        "3",
        "nn.MultiheadAttention({C}, 1) => {s}({x}, {x}, {x}, " "need_weights=False)[0]",
    ),
    (
        "3",
        "nn.MultiheadAttention({C}, 2, batch_first=True) => {s}({x}, {x}, {x}, "
        "average_attn_weights=False)[1]",
    ),
    ("i", "nn.Embedding(16, {w}) => {s}({i}.abs() % 16)"),
    ("i", "nn.Embedding(16, {w}, padding_idx=0) => {s}({i} % 16)"),
    ("i", "nn.EmbeddingBag(16, {w}) => {s}({i} % 16)"),
    ("2345", "nn.Parameter(torch.randn({C})) => {x} * {s}"),
    ("2345", "nn.Parameter(torch.randn({C}, {w}) * 0.3) => {x} @ {s}"),
    (
        "345",
        "nn.Parameter(torch.zeros(1, 1, {C})) => "
        "torch.cat([{s}.expand({x}.shape[0], -1, -1), {x}], 1)",
    ),
    ("345", "nn.Parameter(torch.randn(1, 16, {C})) => {x} + {s}[:, :{x}.shape[1]]"),
    ("2345", "nn.Parameter(torch.tensor({f})) => {x} * {s}.exp()"),
    ("4", "nn.Parameter(torch.randn({w}, {c}, 1, 1) * 0.3) => F.conv2d({x}, {s})"),
    (
        "2345",
        "nn.Parameter(torch.randn({w}, {C}) * 0.3) => F.linear({x}, "
        "F.normalize({s}, dim=-1))",
    ),
    ("2345", "nn.Parameter(torch.randn({C})) => F.layer_norm({x}, ({C},), {s})"),
    (
        "345",
        "nn.ParameterList([nn.Parameter(torch.randn({C})) for _ in range(2)]) "
        "=> {x} * {s}[0] + {s}[1]",
    ),
    (
        "2345",
        "nn.ModuleList([nn.Linear({C}, {w}) for _ in range(3)]) => "
        "torch.stack([layer({x}) for layer in {s}], 1)",
    ),
    (
        "2345",
        "nn.ModuleList([nn.Linear({C}, {w}) for _ in range(3)]) => "
        "sum(layer({x}) for layer in {s})",
    ),
    (
        "2345",
        "nn.ModuleDict({{'a': nn.Linear({C}, {w}), 'b': nn.Linear({C}, {w})}}) "
        "=> {s}['a']({x}) * torch.sigmoid({s}['b']({x}))",
    ),
)
#: Idioms of several lines, which assign ``out``.
IDIOMS = (
    (
        "3",
        "nn.Linear({C}, 3 * {C})",
        """\
b, t, c = {x}.shape
q, k, v = {s}({x}).chunk(3, dim=-1)
q, k, v = (z.view(b, t, 2, c // 2).transpose(1, 2) for z in (q, k, v))
scores = q @ k.transpose(-2, -1) * (c // 2) ** -0.5
scores = scores.masked_fill(torch.ones(t, t).tril() == 0, float('-inf'))
out = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c)""",
    ),
    (
        "3",
        "nn.Linear({C}, 3 * {C}, bias=False)",
        """\
b, n, c = {x}.shape
qkv = {s}({x}).reshape(b, n, 3, 2, c // 2).permute(2, 0, 3, 1, 4)
q, k, v = qkv.unbind(0)
out = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, c)""",
    ),
    (
        "3",
        "nn.Linear({C}, {C})",
        """\
state = {x}.new_zeros({x}.shape[0], {C})
outputs = []
for step in range(3):
    state = torch.tanh({s}({x}[:, step % 2] + state))
    outputs.append(state)
out = torch.stack(outputs, dim=1)""",
    ),
    (
        "4",
        "nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d({c}, {w}, 1), nn.ReLU(), "
        "nn.Conv2d({w}, {c}, 1), nn.Sigmoid())",
        "out = {x} * {s}({x})",
    ),
    (
        "4",
        "nn.Linear({c}, {c})",
        """\
gate = torch.sigmoid({s}({x}.mean((2, 3))))
out = {x} * gate[:, :, None, None]""",
    ),
    (
        "3",
        "nn.Parameter(torch.randn({C}))",
        """\
x1, x2 = {x}[..., : {C} // 2], {x}[..., {C} // 2 :]
angle = torch.arange({x}.shape[1])[:, None] * 0.5 ** torch.arange({C} // 2)
cos, sin = angle.cos(), angle.sin()
out = torch.cat((x1 * cos - x2 * sin, x1 * sin + x2 * cos), -1)
out = out * {s}""",
    ),
    (
        "2345",
        "nn.Identity()",
        """\
out = {x}.clone()
out[:, 0] = {s}({x})[:, 0] * 2""",
    ),
    (
        "345",
        "nn.Identity()",
        """\
shifted = {s}({x})
out = {x} * 1
out[:, 1:] += shifted[:, :-1]
out[..., -1] = 0.5""",
    ),
    (
        "2345",
        "nn.Linear({C}, {C})",
        """\
out = {s}({x})
out += {x}
out = out.mul_({f}).clamp_(min=-2)""",
    ),
    (
        "2345",
        "nn.Identity()",
        """\
out = torch.zeros_like({x})
out[{x} > 0] = {f}
out = out + {s}({x})""",
    ),
    (
        "4",
        "nn.Conv2d({c}, {c}, 3, padding=1)",
        """\
features = [{x}]
for _ in range(2):
    features.append(F.relu({s}(features[-1])))
out = torch.cat(features, 1)""",
    ),
    (
        "4",
        "nn.Conv2d({c}, {c}, 1)",
        """\
b, c, h, w = {x}.shape
windows = {x}.view(b, c, h // 2, 2, w // 2, 2).permute(0, 2, 4, 3, 5, 1)
windows = windows.reshape(-1, 4, c)
windows = windows + windows.mean(1, keepdim=True)
windows = windows.view(b, h // 2, w // 2, 2, 2, c).permute(0, 5, 1, 3, 2, 4)
out = windows.reshape(b, c, h, w)
out = {s}(out)""",
    ),
    (
        "2345",
        "nn.Linear({C}, {C})",
        """\
if {x}.shape[-1] % 2 == 0:
    out = {s}({x})
else:
    out = {x} * 2""",
    ),
    (
        "3",
        "nn.Linear({C}, 4)",
        """\
weights = {s}({x}).softmax(-1)
values, indices = weights.topk(2, dim=-1)
mask = torch.zeros_like(weights).scatter(-1, indices, values)
out = {x}.unsqueeze(-1) * mask.unsqueeze(-2)
out = out.sum(-1)""",
    ),
    (
        "3",
        "nn.Parameter(torch.randn({w}, {C}))",
        """\
distance = ({x}.unsqueeze(2) - {s}).pow(2).sum(-1)
codes = distance.argmin(-1)
out = {x} + (F.embedding(codes, {s}) - {x}).detach()""",
    ),
    (
        "3",
        "nn.GRUCell({C}, {C})",
        """\
hidden = torch.zeros({x}.size(0), {C})
for position in range({x}.size(1)):
    hidden = {s}({x}[:, position], hidden)
out = hidden""",
    ),
    (
        "345",
        "nn.Parameter(torch.ones({C}))",
        """\
mean = {x}.mean(-1, keepdim=True)
variance = {x}.var(-1, keepdim=True, unbiased=False)
out = ({x} - mean) / torch.sqrt(variance + 1e-5) * {s}""",
    ),
    (
        "2345",
        "nn.ModuleList([nn.Sequential(nn.Linear({C}, {C}), nn.Tanh()) "
        "for _ in range(3)])",
        """\
out = {x}
for layer in {s}:
    out = out + layer(out)""",
    ),
    (
        "3",
        "nn.Linear({C}, 1)",
        """\
weight = torch.softmax({s}({x}), dim=1)
out = (weight * {x}).sum(dim=1)""",
    ),
    (
        "3",
        "nn.Identity()",
        """\
lengths = torch.full(({x}.shape[0],), {x}.shape[1]) - 1
mask = torch.arange({x}.shape[1])[None] < lengths[:, None]
out = ({x} * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
out = {s}(out)""",
    ),
)
