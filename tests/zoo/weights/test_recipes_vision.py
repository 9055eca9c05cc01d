"""Recipes of networks on images against the exported models of the zoo.

Exporters fold batch norms into the convolutions before them. Here each is unfolded into
one with other numbers, which do the same: what the recipe makes of these has to give
what is recorded.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn_import import load
from burn_import.options import Options
from burn_import.pipeline import import_model
from tests.modules import Array
from tests.zoo.recorded import zoo_cases
from tests.zoo.weights.test_recipes import compare, saved

#: The configuration of each model, and the epsilon of its batch norms.
MODELS: Mapping[str, tuple[Mapping[str, Any], float]] = {
    "arch/resnet.dynamo-op20": ({"model_type": "resnet"}, 1e-5),
    "arch/resnet.ts-op17": ({"model_type": "resnet"}, 1e-5),
    "arch/mobilenet_v2.dynamo-op20": (
        {"model_type": "mobilenet_v2", "image_size": 32},
        1e-3,
    ),
    "arch/convnext.dynamo-op20": ({"model_type": "convnext"}, 1e-5),
    "arch/convnext.ts-op11": ({"model_type": "convnext"}, 1e-5),
}


@pytest.mark.parametrize("name", MODELS)
def test_recipe(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    zoo: Path = request.config.getoption("--zoo")
    if not (zoo / "manifest.json").is_file():
        pytest.skip(f"no models in {zoo.name}/ (see --zoo)")
    (case,) = (case for case in zoo_cases(zoo) if case.name == name)
    folded = dict(import_model(case.path, Options(stem="net")).weights)
    config, eps = MODELS[name]
    weights = unfolded(folded, eps)
    model: Any = load(saved(tmp_path, weights, config))
    assert set(model.state_dict()) == set(weights)
    assert case.goldens
    for golden in case.goldens:
        compare(model, golden)


def unfolded(weights: Mapping[str, Array], eps: float) -> dict[str, Array]:
    """Return ``weights`` with batch norms behind the convolutions that had them."""
    rng = np.random.default_rng(5)
    results = dict(weights)
    for key in [key for key in weights if key.endswith(".convolution.bias")]:
        bias, stem = results.pop(key), key.removesuffix("convolution.bias")
        scale, mean, var = (
            rng.uniform(0.5, 1.5, bias.shape).astype(np.float32) for _ in range(3)
        )
        turn = np.sqrt(var + np.float32(eps)) / scale
        weight = results[f"{stem}convolution.weight"]
        results[f"{stem}convolution.weight"] = weight * turn[:, None, None, None]
        results[f"{stem}normalization.weight"] = scale
        results[f"{stem}normalization.bias"] = bias + mean * scale / np.sqrt(
            var + np.float32(eps)
        )
        results[f"{stem}normalization.running_mean"] = mean
        results[f"{stem}normalization.running_var"] = var
    return results
