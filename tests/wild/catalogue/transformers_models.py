"""Every architecture of transformers that can be built from a small configuration."""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from transformers.models.auto import modeling_auto

from tests.wild.catalogue.small_configs import small_config
from tests.wild.catalogue.transformers_inputs import input_sets, make_inputs
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
    registries = [f"MODEL_FOR_{task}_MAPPING_NAMES" for task in TASKS]
    for registry in [*registries, "MODEL_MAPPING_NAMES"]:
        name = getattr(modeling_auto, registry, {}).get(model_type)
        if isinstance(name, tuple | list):
            name = name[0]
        if name:
            yield name


class NoInputsError(ValueError):
    """No set of inputs that is known runs through the model."""


#: What a configuration with sizes that do not fit each other may raise.
FAILURES = (
    *(NoInputsError, RuntimeError, ValueError, TypeError, AttributeError, NameError),
    *(KeyError, IndexError, AssertionError, ImportError, ArithmeticError),
    StrictDataclassError,
)


def _build(model_type: str) -> Case:
    logging.disable(logging.WARNING)
    names = list(dict.fromkeys(_class_names(model_type)))
    failures = []
    for is_shallow_only in (False, True):
        for name in dict.fromkeys((names[0], names[-1])):
            try:
                return _build_class(model_type, name, is_shallow_only)
            except FAILURES as error:
                text = f"{type(error).__name__}: {str(error)[:300]}"
                failures.append(f"{name}: {text}")
    raise NoInputsError("; ".join(failures))


def _build_class(model_type: str, name: str, is_shallow_only: bool) -> Case:
    torch.manual_seed(0)
    kind = transformers.CONFIG_MAPPING[model_type]
    config = small_config(kind, model_type, is_shallow_only)
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
    known = sorted(parameters)[:12]
    raise NoInputsError(f"forward({', '.join(known)}): {' | '.join(failures[:3])}")


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
            outputs = list(flatten_tensors(model(**inputs, **fixed)))
    except (RuntimeError, ValueError, TypeError, AttributeError, IndexError) as error:
        failures.append(f"{type(error).__name__}: {str(error)[:100]}")
        return None
    except (AssertionError, KeyError, NotImplementedError) as error:
        failures.append(f"{type(error).__name__}: {str(error)[:100]}")
        return None
    return tuple(inputs.values()) if outputs else None
