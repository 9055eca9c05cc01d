"""Guesses for weights without a program: layer tables and class names."""

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np

from burn import nn
from tests.cli.commands import run
from tests.importer.pytorch_files import Name, New, tensor, zip_file
from tests.importer.skeleton.test_skeleton import check_weights, saved, source, state_of
from tests.modules import Array


def checkpoint(tmp_path: Path, state: Any) -> Path:
    """Return a file of ``torch.save``."""
    path = tmp_path / "net.pt"
    path.write_bytes(zip_file(state))
    return path


def test_what_is_no_tensor_is_told(tmp_path: Path) -> None:
    odd = New(Name("argparse", "Namespace"), (), {"lr": 1})
    weight = tensor("0", np.ones((2, 3), np.float32))
    path = checkpoint(tmp_path, {"fc.weight": weight, "how": odd})
    message = (
        "Left out of what the file holds: 'how' is an object of argparse.Namespace"
    )
    assert message in " ".join(source(path).split())
    assert message in " ".join(run(path, "-o", tmp_path / "told.py").stderr.split())
    path = checkpoint(tmp_path, {f"a{n}": odd for n in range(5)})
    answer = run(path, "-o", tmp_path / "none.py")
    assert answer.exit_code == 4
    assert "no tensors that can be read: 'a0' is an object of" in answer.stderr
    assert "and 2 more. Export the model" in answer.stderr


def test_a_checkpoint_in_shards_has_to_be_joined(tmp_path: Path) -> None:
    folder = tmp_path / "step_100"
    folder.mkdir()
    (folder / ".metadata").write_bytes(b"\x80\x02}.")
    shard = folder / "__0_0.distcp"
    shard.write_bytes(zip_file({}) + zip_file({}))
    for path in (folder, shard):
        for output in ("net.py", "net.safetensors"):
            answer = run(path, "-o", tmp_path / output)
            assert answer.exit_code == 3
            assert "dcp_to_torch FOLDER NAME.pt" in answer.stderr


def test_the_state_of_an_optimizer_is_no_model(tmp_path: Path) -> None:
    moment = {"step": 3, "exp_avg": tensor("0", np.ones(3, np.float32))}
    groups = [{"lr": 0.1, "params": [0]}]
    path = checkpoint(tmp_path, {"state": {0: moment}, "param_groups": groups})
    answer = run(path, "-o", tmp_path / "net.py")
    assert answer.exit_code == 4
    assert "expected the weights of a model, got the state of an opt" in answer.stderr
    record = run(path, "-o", tmp_path / "net.safetensors")
    assert record.exit_code == 0 and "state.0.exp_avg" in record.stdout


def test_a_recurrent_layer_tells_the_table_in_front_of_it(tmp_path: Path) -> None:
    state = state_of(e=nn.Embedding(30, 6), norm=nn.LayerNorm(6), r=nn.LSTM(6, 4))
    state |= state_of(w=nn.Linear(6, 5, bias=False))
    state |= state_of(deep=nn.Embedding(9, 7)) | state_of(cell=nn.GRUCell(7, 4))
    path = saved(tmp_path, state)
    text = source(path)
    assert "self.e = nn.Embedding(30, 6)" in text
    assert "self.deep = nn.Embedding(9, 7)" in text
    assert "self.w = nn.Linear(6, 5, bias=False)" in text
    assert "whether a matrix without bias is a table" in " ".join(text.split())
    check_weights(path, state)


def test_a_matrix_in_front_of_a_recurrent_layer_may_be_a_product(
    tmp_path: Path,
) -> None:
    state = state_of(a=nn.Linear(8, 6, bias=False), lstm=nn.LSTM(6, 4))  # gives 6
    state |= state_of(b=nn.Linear(5, 5, bias=False), gru=nn.GRU(5, 4))  # square
    state |= state_of(fc_out=nn.Linear(3, 7, bias=False), rnn=nn.RNN(3, 4))  # named
    state |= state_of(c=nn.Linear(2, 9), last=nn.RNN(2, 4))  # has a bias
    text = source(saved(tmp_path, state))
    assert "self.a = nn.Linear(8, 6, bias=False)" in text
    assert "self.b = nn.Linear(5, 5, bias=False)" in text
    assert "self.fc_out = nn.Linear(3, 7, bias=False)" in text
    assert "self.c = nn.Linear(2, 9)" in text
    assert "Embedding" not in text


def test_classes_of_letters_say_where_they_are(tmp_path: Path) -> None:
    inside = ("m", "m.encoder.a", "m.encoder.b", "m.d", "m.h.0", "x.y")
    arrays = {f"{n}.w": np.ones((i + 2, 3), np.float32) for i, n in enumerate(inside)}
    arrays |= {f"{n}.v": np.ones((3, i + 2), np.float32) for i, n in enumerate(inside)}
    text = source(saved(tmp_path, arrays))
    names = re.findall(r"^class (\w+)", text, re.MULTILINE)
    assert sorted(names) == sorted(
        ["Net", "Model", "Encoder", "EncoderA", "EncoderB", "PartD", "Block"]
        + ["PartX", "PartY"]
    )


def test_docstrings_show_the_letters_of_keys(tmp_path: Path) -> None:
    word, long = "\u0441\u043b\u043e\u0439", "\u6f22\u5b57" * 40
    state: dict[str, Array] = {f"{word}.weight": np.ones((3, 4), np.float32)}
    state |= {f"{long}.w": np.ones(3, np.float32), "\u202ex.w": np.ones(2, np.float32)}
    path = saved(tmp_path, state)
    text = source(path)
    assert text.isascii() and max(map(len, text.splitlines())) <= 88
    docstring = ast.get_docstring(ast.parse(text)) or ""
    message = " ".join(docstring.split())
    assert f"'{word}.weight' is part.weight" in message
    assert f"'{long[:8]}...' is part2.w" in message
    assert "\u202e" not in message
    result = run(path, "-o", tmp_path / "letters.py")
    assert f"'{word}.weight' is part.weight" in result.stderr
