"""Every architecture of transformers that can be built from a small configuration."""

from __future__ import annotations

import copy
import inspect
import logging
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from transformers.models.auto import modeling_auto

from tests.wild.catalogue.small_configs import small_config
from tests.wild.catalogue.transformers_inputs import (
    add_image_tokens,
    input_sets,
    make_inputs,
)
from tests.wild.catalogue.wrappers import flatten_tensors, wrap_model
from tests.wild.entry import Case, Entry, stable_hash

#: Registries of classes with heads, the first that has the type is used.
TASKS = (
    *("CAUSAL_LM", "SEQ_TO_SEQ_CAUSAL_LM", "MASKED_LM", "SEQUENCE_CLASSIFICATION"),
    *("IMAGE_CLASSIFICATION", "SEMANTIC_SEGMENTATION", "OBJECT_DETECTION"),
    *("DEPTH_ESTIMATION", "CTC", "AUDIO_CLASSIFICATION", "SPEECH_SEQ_2_SEQ"),
    *("IMAGE_TEXT_TO_TEXT", "VIDEO_CLASSIFICATION", "TIME_SERIES_PREDICTION"),
    *("UNIVERSAL_SEGMENTATION", "MASK_GENERATION", "TEXT_TO_SPECTROGRAM"),
    *("KEYPOINT_DETECTION", "IMAGE_TO_IMAGE", "TEXT_TO_WAVEFORM", "BACKBONE"),
)
LARGEST = 40_000_000


def list_entries() -> list[Entry]:
    """Return an entry for each type of model with a class."""
    return [
        Entry("transformers", model_type, model_type, partial(_build, model_type))
        for model_type in transformers.CONFIG_MAPPING
        if next(_class_names(model_type), None) is not None
    ]


def _class_names(model_type: str) -> Iterator[str]:
    """Yield the names of classes of models for a type, those with heads first."""
    if model_type in PART_CLASSES:
        yield PART_CLASSES[model_type]
        return
    registries = [f"MODEL_FOR_{task}_MAPPING_NAMES" for task in TASKS]
    for registry in [*registries, "MODEL_MAPPING_NAMES"]:
        name = getattr(modeling_auto, registry, {}).get(model_type)
        if isinstance(name, tuple | list):
            name = name[0]
        if name:
            yield name


class NoInputsError(ValueError):
    """No set of inputs that is known runs through the model."""


class MissingLibraryError(ImportError):
    """A model needs a package that is not installed."""


#: Configurations in the order of trial: whether only depth is reduced, and whether
#: numbers that are None by default are set.
VARIANTS = ((False, False), (False, True), (True, False), (True, True))
#: Types whose whole model has no ``forward`` of tensors: classes of a part instead.
PART_CLASSES = {
    "bark": "BarkSemanticModel",
    "emu3": "Emu3ForCausalLM",
    "musicgen": "MusicgenForCausalLM",
    "musicgen_melody": "MusicgenMelodyForCausalLM",
    "qwen2_5_omni": "Qwen2_5OmniThinkerForConditionalGeneration",
    "qwen3_omni_moe": "Qwen3OmniMoeThinkerForConditionalGeneration",
}
#: The field of the configuration that belongs to a class of a part.
PARTS = {
    "BarkSemanticModel": "semantic_config",
    "Emu3ForCausalLM": "text_config",
    "MusicgenForCausalLM": "decoder",
    "MusicgenMelodyForCausalLM": "decoder",
    "Qwen2_5OmniThinkerForConditionalGeneration": "thinker_config",
    "Qwen3OmniMoeThinkerForConditionalGeneration": "thinker_config",
}
#: What a configuration with sizes that do not fit each other may raise.
FAILURES = (
    *(NoInputsError, RuntimeError, ValueError, TypeError, AttributeError, NameError),
    *(KeyError, IndexError, AssertionError, ArithmeticError, OSError),
    StrictDataclassError,
)


def _build(model_type: str) -> Case:
    """Build the first class of a type that runs, small configurations first.

    Raises:
        MissingLibraryError: a class needs a package that is not installed.
        NoInputsError: no class runs with any of the configurations.
    """
    logging.disable(logging.WARNING)
    names = list(dict.fromkeys(_class_names(model_type)))
    failures, missing = [], ""
    for variant in VARIANTS:
        for name in names if variant[0] is False else (names[0], names[-1]):
            try:
                return _build_class(model_type, name, *variant)
            except ImportError as error:
                missing = missing or _library(error)
            except FAILURES as error:
                text = f"{type(error).__name__}: {str(error)[:300]}"
                failures.append(f"{name}: {text}")
    if missing:
        raise MissingLibraryError(f"library missing: {missing}")
    raise NoInputsError("; ".join(dict.fromkeys(failures)))


def _library(error: ImportError) -> str:
    """Return the name of the package that an import did not find."""
    match = re.search(r"requires the (\S+) library", str(error))
    return match[1] if match else error.name or str(error)


def _build_class(
    model_type: str, name: str, is_shallow_only: bool, is_filled: bool
) -> Case:
    torch.manual_seed(0)
    kind = transformers.CONFIG_MAPPING[model_type]
    config = small_config(kind, model_type, is_shallow_only, is_filled)
    if name in PARTS:
        config = getattr(config, PARTS[name])
    if stable_hash(model_type) % 2:
        config._attn_implementation = "eager"
    with torch.device("meta"):
        count = _count(getattr(transformers, name)(copy.deepcopy(config)))
    if count > LARGEST:
        raise ValueError(f"the small configuration has {count} parameters")
    model = getattr(transformers, name)(config).float().eval()
    return _find_inputs(model, config)


def _count(model: Any) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def _find_inputs(model: Any, config: Any) -> Case:
    parameters = inspect.signature(model.forward).parameters
    fixed = {"use_cache": False} if "use_cache" in parameters else {}
    failures: list[str] = []
    for names, layouts in input_sets(model):
        for options in layouts:
            sizes = [
                _runs(model, config, names, options["layout"], fixed, failures, k)
                for k in (0, 1)
            ]
            if sizes[0] is not None:
                wrapped = wrap_model(model, names, fixed)
                return Case(wrapped, sizes[0], sizes[1])
    values = sorted(parameters)[:12]
    raise NoInputsError(f"forward({', '.join(values)}): {' | '.join(failures[:3])}")


def _runs(
    model: Any,
    config: Any,
    names: Any,
    layout: int,
    fixed: Any,
    failures: Any,
    size: int,
) -> tuple[Any, ...] | None:
    """Return the inputs of one size if the model runs on them, else None."""
    try:
        inputs = make_inputs(config, names, layout, size)
        with torch.no_grad():
            try:
                result = model(**inputs, **fixed)
            except ValueError as error:
                inputs = _with_tokens(config, inputs, str(error))
                result = model(**inputs, **fixed)
            outputs = list(flatten_tensors(result))
    except (RuntimeError, ValueError, TypeError, AttributeError, IndexError) as error:
        failures.append(f"{type(error).__name__}: {str(error)[:100]}")
        return None
    except (AssertionError, KeyError, NotImplementedError) as error:
        failures.append(f"{type(error).__name__}: {str(error)[:100]}")
        return None
    return tuple(inputs.values()) if outputs else None


def _with_tokens(config: Any, inputs: dict[str, Any], message: str) -> dict[str, Any]:
    """Return inputs with as many image tokens as a model says that it has features.

    Raises:
        ValueError: the message is about something else.
    """
    match = re.search(r"tokens: \d+, features:? (\d+)", message)
    if match is None or "input_ids" not in inputs:
        raise ValueError(message)
    batch = inputs["input_ids"].shape[0]
    return add_image_tokens(config, inputs, int(match[1]) // batch)
