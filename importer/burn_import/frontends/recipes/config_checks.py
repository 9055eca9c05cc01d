"""Check that a recipe supports all settings of a configuration."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from burn.record.errors import joined, shown
from burn_import.frontends.recipes.config import Config, NotClaimed
from burn_import.frontends.recipes.graph_writer import RecipeWriter
from burn_ir import InvalidModel


@dataclass(frozen=True)
class Fact:
    """A number that weights determine, and a clause that explains it."""

    number: int
    clause: str


def extent(w: RecipeWriter, name: str, axis: int) -> Fact:
    """Return the extent of an axis of a weight of this module.

    Raises:
        InvalidModel: the weight has no such axis.
    """
    shape = w.shape(name)
    if axis >= len(shape):
        raise InvalidModel(
            f"weight {shown(w.key(name))}: expected more than {axis} axes, "
            f"got shape {list(shape)}"
        )
    return Fact(shape[axis], f"weight {shown(w.key(name))} has shape {list(shape)}")


def length(w: RecipeWriter, name: str) -> Fact:
    """Return the number of modules in a list of this module."""
    count = w.count(name)
    return Fact(count, f"there are weights of {count} modules in {shown(w.key(name))}")


def agree(config: Config, **facts: Fact) -> None:
    """Check that the configuration's numbers equal those of the weights.

    Raises:
        InvalidModel: some differ; each is listed with the weight that it contradicts.
    """
    problems = [
        f"config {shown(key)}: expected {fact.number}, since {fact.clause}, got {value}"
        for key, fact in facts.items()
        if (value := config.value(key)) is not None and value != fact.number
    ]
    if problems:
        raise InvalidModel(joined(problems))


def heads(
    w: RecipeWriter,
    config: Config,
    name: str,
    key: str = "num_attention_heads",
    axis: int = 0,
) -> int:
    """Return the number of heads that share the output features of layer ``name``.

    Raises:
        NotClaimed: the configuration does not give it.
        InvalidModel: the number does not divide the features.
    """
    fact = extent(w, f"{name}.weight", axis)
    count = config.required(key, 1)
    if count < 1 or fact.number % count:
        raise InvalidModel(
            f"config {shown(key)}: expected a divisor of {fact.number}, "
            f"since {fact.clause}, got {count}"
        )
    return count


Supports = Mapping[str, tuple[object, ...]]
#: Marks an entry of which any value is allowed.
ANY: tuple[object, ...] = ()
#: Entries that change no output in evaluation: training, generation, file formats.
NEUTRAL = frozenset("""
    _attn_implementation _attn_implementation_autoset _commit_hash _name_or_path
    _num_labels attn_implementation auto_map begin_suppress_tokens bos_token_id
    cache_implementation chunk_size_feed_forward cls_token_id decoder_start_token_id
    do_sample dtype eos_token_id finetuning_task forced_bos_token_id forced_eos_token_id
    gradient_checkpointing id2label ignore_index init_std initializer_factor
    initializer_range is_encoder_decoder label2id language license mask_token_id
    max_length min_length model_type num_beams num_labels output_attentions
    output_hidden_states output_past pad_token_id prefix pretraining_tp problem_type
    return_dict sep_token_id suppress_tokens task_specific_params tie_encoder_decoder
    tie_word_embeddings tokenizer_class torch_dtype torchscript transformers_version
    unk_token_id use_cache use_return_dict
    """.split())  # noqa: SIM905  a list of names reads better as text
#: Entries of dropout and similar rates, which have no effect in evaluation.
_RATES = re.compile(r"(\w*_)?(dropout|drop|pdrop|layerdrop)(_\w+)?")
#: Suffixes of Hugging Face's classes; those in one set have the same outputs.
_HEAD = re.compile(r"(For[A-Z]\w*|LMHeadModel)$")
_SAME = ({"ForMaskedLM", "ForPreTraining"}, {"LMHeadModel", "ForCausalLM"})


def any_of(*names: str) -> dict[str, tuple[object, ...]]:
    """Return that entries of these names may have any value."""
    return dict.fromkeys(names, ANY)


#: Entries of image networks that weights determine, and those of backbones.
IMAGES = any_of(
    *("num_channels", "num_stages", "out_features", "out_indices", "stage_names"),
    "semantic_loss_ignore_index",
)


def timm(*architectures: str) -> dict[str, tuple[object, ...]]:
    """Return the supported entries of timm for networks equal to torchvision's."""
    return {
        "architecture": architectures,
        "global_pool": ("avg",),
        **any_of("num_classes", "num_features", "pretrained_cfg"),
    }


def check_config(
    config: Config, name: str, supports: Supports, model_name: str
) -> None:
    """Check that the recipe ``name`` supports every entry of the configuration.

    ``model_name`` is the class that the recipe wrote. ``supports`` maps entries that
    the recipe does not read to the values it supports; ``ANY`` marks entries that
    weights determine or that have no effect.

    Raises:
        NotClaimed: an entry is unknown or has an unsupported value.
    """
    _check_head(config, model_name)
    for path, value in config.unused():
        key = path.rpartition(".")[2]
        if value is None or key in NEUTRAL or _RATES.fullmatch(key):
            continue
        allowed = supports.get(path, supports.get(key))
        if allowed == ANY:
            continue
        if allowed is None:
            raise NotClaimed(
                f"config {shown(path)}: {name} has no known entry of this name, "
                f"got {shown(value)}"
            )
        if value not in allowed:
            expected = " or ".join(map(repr, allowed))
            raise NotClaimed(
                f"config {shown(path)}: expected {expected}, got {shown(value)}"
            )


def _check_head(config: Config, model_name: str) -> None:
    """Check that the written class has the head that the configuration names.

    Raises:
        NotClaimed: the configuration names classes with other heads.
    """
    heads = [match[1] for each in config.architectures if (match := _HEAD.search(each))]
    own = _HEAD.search(model_name)
    if not heads or own is None or own[1] in heads:
        return
    if not any(own[1] in same and same.intersection(heads) for same in _SAME):
        raise NotClaimed(
            f"config 'architectures': expected a class as {model_name}, by the "
            f"weights, got {shown(config.architectures)}"
        )
