"""Repeated modules in skeletons: lists, and classes of blocks."""

from pathlib import Path

import numpy as np

from burn_import.skeleton import skeleton
from tests.importer.skeleton.test_skeleton import check_weights, saved, source
from tests.modules import Array


def test_numbered_modules_of_one_class_are_a_list(tmp_path: Path) -> None:
    state = {
        f"layer{i}.{key}": np.full((4, 4), i, np.float32)
        for i in range(9)
        for key in ("w", "u")
    }
    path = saved(tmp_path, state)
    text = source(path)
    assert "self.layers = nn.ModuleList(Layer0() for _ in range(9))" in text
    assert 'record_names = {"layers": "layer{0}"}' in text
    assert "write what this does with layers" in text
    assert float(check_weights(path, state).layers[8].w.numpy()[0, 0]) == 8
    fewer = {k: v for k, v in state.items() if not k.startswith("layer5.")}
    assert "nn.ModuleList" not in source(saved(tmp_path, fewer))
    tied = {**state, "layer8.w": state["layer0.w"]}
    assert (
        "self.layer8.w = self.layer0.w" in skeleton(list(tied.items()), "N", "w").text
    )


def test_repeated_lists_of_layers_are_blocks(tmp_path: Path) -> None:
    widths = [(8, 16), (16, 32), (32, 32), (32, 64)]
    state: dict[str, Array] = {"stem.weight": np.ones((8, 3, 3, 3), np.float32)}
    for i, (before, after) in enumerate(widths):
        state[f"net.{i}.0.weight"] = np.full((after, before, 3, 3), i, np.float32)
        for key in ("weight", "bias", "running_mean", "running_var"):
            state[f"net.{i}.1.{key}"] = np.full(after, i, np.float32)
        state[f"net.{i}.3.weight"] = np.full((after, after, 1, 1), i, np.float32)
    path = saved(tmp_path, state)
    text = source(path)
    calls = ", ".join(f"NetBlock({before}, {after})" for before, after in widths)
    assert f"[{calls}]" in " ".join(text.split()).replace("[ ", "[").replace(" ]", "]")
    assert 'record_names = {"bn": "1", "conv": "0", "conv2": "3"}' in text
    model = check_weights(path, state)
    assert float(model.net[3].conv2.weight.numpy()[0, 0, 0, 0]) == 3
