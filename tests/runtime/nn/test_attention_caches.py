"""Sequences computed position by position with caches, and the whole at once."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, Tensor, dtypes, nn, optim, train
from burn.box import Parameter
from burn.ops.caches import update_slice
from tests.runtime.gradcheck import check_gradient

BATCH, LENGTH, CAPACITY, WIDTH = 3, 6, 9, 8
#: The number of positions of each call; calls of one shape share a plan.
CHUNKS = (2, 1, 1, 1, 1)


def normal(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Tensor:
    rng = np.random.default_rng(seed)
    return burn.tensor(rng.normal(size=shape).astype(dtype))


def attention(dtype: Any = dtypes.float32, **options: Any) -> Any:
    nn.init.seed(0)
    layer: Any = nn.MultiheadAttention(WIDTH, 2, batch_first=True, **options)
    layer.in_proj_bias.set(normal(3 * WIDTH, seed=1))
    for _, module in layer.modules():
        for name, box in list(vars(module).items()):
            if isinstance(box, Parameter):
                setattr(module, name, Parameter(box.cast(dtype)))
    return layer


def chunks(x: Tensor, axis: int = 1) -> list[Tensor]:
    ends = np.cumsum(CHUNKS)
    return [
        burn.ops.getitem(x, (slice(None),) * axis + (slice(end - count, end),))
        for count, end in zip(CHUNKS, ends, strict=True)
    ]


def joined(parts: list[Tensor], axis: int = 1) -> Any:
    return np.concatenate([part.numpy() for part in parts], axis)


def assert_equal(actual: Any, expected: Tensor) -> None:
    error = 2e-2 if expected.dtype == dtypes.float16 else 2e-5
    np.testing.assert_allclose(actual, expected.numpy(), rtol=error, atol=error)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float16])
@pytest.mark.parametrize("need_weights", [False, True])
def test_chunks_of_a_causal_sequence_give_the_whole(
    need_weights: bool, dtype: Any, compiled: bool
) -> None:
    layer, x = attention(dtype), normal(BATCH, LENGTH, WIDTH).cast(dtype)
    options = {"need_weights": need_weights, "is_causal": True}
    expected, weights = layer(x, x, x, **options)
    cache = layer.new_cache(CAPACITY, BATCH)
    assert cache.key.dtype == dtype and not cache.state_dict()

    def attend(part: Tensor) -> Any:
        return layer(part, part, part, cache=cache, **options)

    run: Any = burn.compile(attend) if compiled else attend
    for _ in range(3):  # the plan is the same for all positions, and after a reset
        results = [run(part) for part in chunks(x)]
        assert_equal(joined([out for out, _ in results]), expected)
        if need_weights:
            seen = joined([weights for _, weights in results])
            assert_equal(seen[..., :LENGTH], weights)
            assert not seen[..., LENGTH:].any()
        assert cache.length.numpy().tolist() == [LENGTH]
        cache.reset()
    if compiled:
        assert run.notes == [] and len(run.executables) == len(set(CHUNKS))


@pytest.mark.parametrize("compiled", [False, True])
def test_masks_and_padding(compiled: bool) -> None:
    """Masks have columns for the capacity, and padding is given for new positions."""
    layer, x = attention(), normal(BATCH, LENGTH, WIDTH)
    rng = np.random.default_rng(3)
    hidden = rng.random((LENGTH, CAPACITY)) < 0.3
    hidden |= np.triu(np.ones((LENGTH, CAPACITY), bool), 1)
    padding = np.arange(LENGTH) < np.array([[0], [1], [3]])
    given = [burn.tensor(array) for array in (hidden[:, :LENGTH], padding)]
    expected, _ = layer(x, x, x, given[1], False, given[0])
    cache = layer.new_cache(CAPACITY, BATCH, padding=True)

    def attend(part: Tensor, rows: Tensor, own: Tensor) -> Any:
        return layer(part, part, part, own, False, rows, cache=cache)[0]

    run: Any = burn.compile(attend) if compiled else attend
    rows = chunks(burn.tensor(hidden), axis=0)
    operands = zip(chunks(x), rows, chunks(given[1]), strict=True)
    assert_equal(joined([run(*each) for each in operands]), expected)


def test_a_step_without_padding_sees_all_of_its_positions() -> None:
    layer, x = attention(), normal(BATCH, LENGTH, WIDTH)
    padding = np.arange(LENGTH) < np.array([[0], [1], [2]])
    expected, _ = layer(x, x, x, burn.tensor(padding), False, is_causal=True)
    cache = layer.new_cache(CAPACITY, BATCH, padding=True)
    first = burn.tensor(padding[:, :2])
    masks = [first] + [None] * (len(CHUNKS) - 1)
    parts = [
        layer(part, part, part, mask, False, is_causal=True, cache=cache)[0]
        for part, mask in zip(chunks(x), masks, strict=True)
    ]
    assert_equal(joined(parts), expected)


def test_without_causality_a_chunk_sees_what_is_there() -> None:
    layer, x = attention(), normal(1, LENGTH, WIDTH)
    cache = layer.new_cache(CAPACITY)
    end = 0
    for part in chunks(x):
        end += part.shape[1]
        seen = x[:, :end]
        expected, weights = layer(part, seen, seen)
        out, all_weights = layer(part, part, part, cache=cache)
        assert_equal(out.numpy(), expected)
        assert_equal(all_weights.numpy()[..., :end], weights)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("with_batch", [False, True])
def test_layouts(with_batch: bool, batch_first: bool) -> None:
    layer: Any = nn.MultiheadAttention(WIDTH, 2, kdim=5, batch_first=batch_first)
    axis = int(batch_first and with_batch)
    shape = [LENGTH, *([BATCH] if with_batch and not batch_first else [])]
    shape = [BATCH, LENGTH] if with_batch and batch_first else shape
    x, key = normal(*shape, WIDTH), normal(*shape, 5, seed=1)
    expected, _ = layer(x, key, x, is_causal=True)
    cache = layer.new_cache(CAPACITY, BATCH if with_batch else 1)
    parts = zip(chunks(x, axis), chunks(key, axis), strict=True)
    outs = [layer(a, b, a, is_causal=True, cache=cache)[0] for a, b in parts]
    assert_equal(joined(outs, axis), expected)
    known = layer.cache_of(key, x)
    assert_equal(layer(x, None, None, cache=known)[0].numpy(), layer(x, key, x)[0])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
def test_encoders(norm_first: bool, compiled: bool) -> None:
    layer = nn.TransformerEncoderLayer(
        WIDTH, 2, 16, batch_first=True, norm_first=norm_first
    )
    model = nn.TransformerEncoder(layer, 2, nn.LayerNorm(WIDTH))
    positions = nn.PositionalEncoding(WIDTH, max_len=CAPACITY, batch_first=True)
    x = normal(BATCH, LENGTH, WIDTH)
    expected = model(positions(x), is_causal=True)
    cache = model.new_cache(CAPACITY, BATCH)

    def advance(part: Tensor, cache: Any) -> Tensor:
        placed = positions(part, cache.length)
        return model(placed, is_causal=True, cache=cache)

    run: Any = burn.compile(advance) if compiled else advance
    assert_equal(joined([run(part, cache) for part in chunks(x)]), expected)
    if compiled:
        assert run.notes == [] and len(run.executables) == len(set(CHUNKS))


@pytest.mark.parametrize("compiled", [False, True])
def test_decoders_project_the_memory_once(compiled: bool) -> None:
    layer = nn.TransformerDecoderLayer(WIDTH, 2, 16, batch_first=True)
    model, x = nn.TransformerDecoder(layer, 2), normal(BATCH, LENGTH, WIDTH)
    memory = normal(BATCH, 4, WIDTH, seed=1)
    padding = burn.tensor(np.arange(4) >= np.array([[4], [2], [3]]))
    seen = burn.tensor(np.random.default_rng(5).random((LENGTH, 4)) < 0.3)
    expected = model(*(x, memory, None, seen, None, padding), tgt_is_causal=True)
    cache = model.new_cache(memory, CAPACITY, padding)
    for each in model.layers:  # keys and values of the memory are not computed again
        weight = each.multihead_attn.in_proj_weight.numpy().copy()
        weight[WIDTH:] = np.nan
        each.multihead_attn.in_proj_weight.set(burn.tensor(weight))

    def advance(part: Tensor, rows: Tensor) -> Tensor:
        return model(part, None, None, rows, tgt_is_causal=True, cache=cache)

    run: Any = burn.compile(advance) if compiled else advance
    rows = chunks(seen, axis=0)
    for _ in range(2):
        outs = [run(*each) for each in zip(chunks(x), rows, strict=True)]
        assert_equal(joined(outs), expected)
        cache.reset()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_mixed_precision(precision: Any, compiled: bool) -> None:
    layer = nn.TransformerDecoderLayer(WIDTH, 2, 16, batch_first=True)
    model, x = nn.TransformerDecoder(layer, 2), normal(BATCH, LENGTH, WIDTH)
    memory = normal(BATCH, 4, WIDTH, seed=1)
    with nn.autocast(precision):
        expected = model(x, memory, tgt_is_causal=True)
        cache = model.new_cache(memory, CAPACITY)

        def advance(part: Tensor) -> Tensor:
            return model(part, None, tgt_is_causal=True, cache=cache)

        run: Any = burn.compile(advance) if compiled else advance
        outs = joined([run(part) for part in chunks(x)])
    np.testing.assert_allclose(outs, expected.numpy(), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("interleaved", [False, True])
def test_positions_at_a_tensor(interleaved: bool) -> None:
    rotary = nn.RotaryEmbedding(WIDTH, 16, interleaved=interleaved)
    x = normal(1, 2, LENGTH, WIDTH)
    offset = burn.tensor(np.array([3]))
    np.testing.assert_array_equal(rotary(x, offset).numpy(), rotary(x, 3).numpy())


def test_gradients_reach_the_keys_of_the_same_call() -> None:
    layer, x = attention(), normal(1, LENGTH, WIDTH)
    layer.to(Autodiff(Cpu()))
    past, new = x[:, :4], x[:, 4:]
    cache = layer.new_cache(CAPACITY)
    layer(past, past, past, is_causal=True, cache=cache)
    out, _ = layer(new, new, new, need_weights=False, is_causal=True, cache=cache)
    actual = (out**2).sum().backward().by_name(layer)
    projected = [p.detach() for p in layer._projected(None, past, past)[1:]]

    fresh = attention()
    fresh.to(Autodiff(Cpu()))
    q, k, v = fresh._projected(new, new, new)
    keys = [
        burn.ops.concat([old, own], 1)
        for old, own in zip(projected, (k, v), strict=True)
    ]
    q, k, v = (fresh._heads(t, True) for t in (q, *keys))
    attended = burn.ops.attention(q, k, v, offset=4, causal=True)
    whole = fresh.out_proj(attended.permute(0, 2, 1, 3).reshape(*new.shape))
    expected = (whole**2).sum().backward().by_name(fresh)
    assert actual.keys() == expected.keys()
    for name, gradient in expected.items():
        assert_equal(actual[name].numpy(), gradient)


def losses_by_segment(recomputed: str, compiled: bool) -> list[float]:
    """Train on sequences by segments, whose keys the next segments see."""
    nn.init.seed(0)
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 2)
    if recomputed == "layers":
        nn.checkpoint(model, "layers.*")
    is_balanced = recomputed == "balanced"
    model.to(Autodiff(Cpu(), checkpointing="balanced" if is_balanced else "none"))
    cache = model.new_cache(CAPACITY, BATCH)

    @train.step(model, optim.SGD(model, lr=0.1), compiled=compiled)
    def step(x: Tensor) -> Tensor:
        return ((model(x, is_causal=True, cache=cache) - x) ** 2).mean()

    losses = []
    for _ in range(3):
        losses += [
            step(part).item() for part in chunks(normal(BATCH, LENGTH, WIDTH))[1:]
        ]
        cache.reset()
    assert step.notes == []
    return losses


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("recomputed", ["", "layers", "balanced"])
def test_training_by_segments(recomputed: str, compiled: bool) -> None:
    expected = losses_by_segment("", compiled=False)
    assert expected[-1] < 0.7 * expected[0]
    actual = losses_by_segment(recomputed, compiled)
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


@pytest.mark.parametrize("start", [-1, 0, 2, 7])
def test_the_gradient_of_a_written_slice(start: int) -> None:
    x = np.random.default_rng(0).normal(size=(2, 5, 3))
    update = np.random.default_rng(1).normal(size=(2, 2, 3))
    place = burn.tensor(np.array([start]))
    check_gradient(lambda a, b: update_slice(a, b, place), x, update)


def test_too_many_positions() -> None:
    layer, x = attention(), normal(1, 1, WIDTH)
    cache = layer.new_cache(2)
    for _ in range(2):
        layer(x, x, x, cache=cache)
    with pytest.raises(ValueError, match="room for 2 positions: 2 are there, 1 more"):
        layer(x, x, x, cache=cache)
    cache.reset()
    run = burn.compile(lambda part: layer(part, part, part, cache=cache)[0])
    results = [run(x).numpy() for _ in range(4)]
    assert [bool(np.isnan(each).all()) for each in results] == [False] * 2 + [True] * 2
    with pytest.raises(ValueError, match="room for 2 positions"):
        run(normal(1, 3, WIDTH))


def test_mistakes() -> None:
    layer, x = attention(), normal(1, 2, WIDTH)
    cache, known = layer.new_cache(4), layer.cache_of(x, x)
    padding = burn.tensor(np.zeros((1, 2), bool))
    with pytest.raises(ValueError, match="a key and a value, or a cache"):
        layer(x, None, None)
    with pytest.raises(ValueError, match="a key and a value for a cache that grows"):
        layer(x, None, None, cache=cache)
    with pytest.raises(ValueError, match="expected None for key, value"):
        layer(x, x, x, cache=known)
    with pytest.raises(ValueError, match="padding=True"):
        layer(x, x, x, padding, cache=cache)
    with pytest.raises(ValueError, match="is_causal=False"):
        layer(x, None, None, is_causal=True, cache=known)
    y = normal(2, 2, WIDTH)
    with pytest.raises(ValueError, match=r"expected keys \[1, 2, new, 4\]"):
        layer(y, y, y, cache=cache)
