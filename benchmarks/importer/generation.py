"""Measures how long generating the source of a BERT takes, black included.

    python -m benchmarks.importer.generation [--layers 12 24] [--rounds 3] [--profile]

The graphs are those of BERT-base (hidden 768, 12 heads), as PyTorch's two exporters
write them: names with slashes, shapes computed from ``Shape`` nodes and a ``Constant``
for every number (TorchScript), or numbered names with the modules as metadata (dynamo).
Matrices are holes in a file beside the model, so that reading them costs nothing.
Seconds are processor time of the process, from the file to the text; the last column
says how much longer twice the layers take, which is less than 2 as some cost is fixed.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from benchmarks.cases import print_table

HEAD = ("exporter", "layers", "nodes", "lines", "seconds", "of which black", "growth")
HIDDEN, HEADS, INNER, WORDS, PLACES = 768, 12, 3072, 30522, 512
RNG = np.random.default_rng(0)
#: The seconds that twelve layers may take.
BAR = 2.0


class Draft:
    """A model that is written node by node; weights are places in an empty file."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.stored: list[TensorProto] = []
        self.size = 0

    def weight(self, name: str, *shape: int) -> str:
        """The name of a weight: a matrix is a hole in the file beside the model.

        A vector has numbers: a bias of zeros would be no bias.
        """
        if len(shape) == 1:
            return self.store(name, RNG.standard_normal(shape).astype(np.float32))
        tensor = TensorProto(name=name, dims=shape, data_type=TensorProto.FLOAT)
        tensor.data_location = TensorProto.EXTERNAL
        count = 4 * int(np.prod(shape))
        for key, value in (("location", "weights.bin"), ("offset", self.size)):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, str(value)
        entry = tensor.external_data.add()
        entry.key, entry.value = "length", str(count)
        self.size += count
        self.stored.append(tensor)
        return name

    def store(self, name: str, value: Any) -> str:
        """The name of a small stored array."""
        self.stored.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def save(self, path: Path) -> Path:
        """Write the model and its file of weights; ``path``."""
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "seq"])
            for name in ("input_ids", "attention_mask")
        ]
        output = helper.make_empty_tensor_value_info("last_hidden_state")
        graph = helper.make_graph(
            self.nodes, "main_graph", inputs, [output], self.stored
        )
        opsets = [helper.make_opsetid("", 20)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
        with path.with_name("weights.bin").open("wb") as file:
            file.truncate(self.size)
        return path


class TorchScript(Draft):
    """Nodes as ``torch.onnx.export(dynamo=False)`` writes them."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}

    def add(self, scope: str, kind: str, *inputs: str, **attrs: Any) -> str:
        """The output of a new node, called after its scope and operator."""
        base = f"{scope}/{kind}"
        count = self.counts[base] = self.counts.get(base, -1) + 1
        name = f"{base}_{count}" if count else base
        output = f"{name}_output_0"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], name, **attrs))
        return output

    def number(self, scope: str, value: Any) -> str:
        """The output of a new Constant."""
        tensor = numpy_helper.from_array(np.asarray(value))
        return self.add(scope, "Constant", value=tensor)

    def linear(self, scope: str, x: str, inputs: int, outputs: int) -> str:
        """A dense layer, whose weight is turned and has lost its name."""
        key = scope.removeprefix("/").replace("/", ".")
        weight = self.weight(f"onnx::MatMul_{len(self.stored)}", inputs, outputs)
        y = self.add(scope, "MatMul", x, weight)
        return self.add(scope, "Add", self.weight(f"{key}.bias", outputs), y)

    def norm(self, scope: str, x: str) -> str:
        """Layer normalization of the last axis."""
        key = scope.removeprefix("/").replace("/", ".")
        names = [self.weight(f"{key}.{part}", HIDDEN) for part in ("weight", "bias")]
        return self.add(scope, "LayerNormalization", x, *names, axis=-1, epsilon=1e-12)

    def extent(self, scope: str, x: str, axis: int) -> str:
        """The extent of one axis of ``x``, as a vector."""
        size = self.add(
            scope,
            "Gather",
            self.add(scope, "Shape", x),
            self.number(scope, axis),
            axis=0,
        )
        return self.add(scope, "Unsqueeze", size, self.number(scope, [0]))

    def shaped(self, scope: str, x: str, *last: int) -> str:
        """``x`` with its first two extents and others."""
        parts = [self.extent(scope, x, axis) for axis in (0, 1)]
        parts += [self.number(scope, [size]) for size in last]
        shape = self.add(scope, "Concat", *parts, axis=0)
        return self.add(scope, "Reshape", x, shape, allowzero=0)

    def layer(self, number: int, x: str, mask: str) -> str:
        """One layer of the encoder."""
        scope = f"/bert/encoder/layer.{number}"
        own = f"{scope}/attention/self"
        turned = {"query": [0, 2, 1, 3], "key": [0, 2, 3, 1], "value": [0, 2, 1, 3]}
        parts = {}
        for name, perm in turned.items():
            y = self.linear(f"{own}/{name}", x, HIDDEN, HIDDEN)
            y = self.shaped(own, y, HEADS, HIDDEN // HEADS)
            parts[name] = self.add(own, "Transpose", y, perm=perm)
        scores = self.add(own, "MatMul", parts["query"], parts["key"])
        scores = self.add(own, "Div", scores, self.number(own, np.float32(8)))
        scores = self.add(own, "Add", scores, mask)
        scores = self.add(own, "Softmax", scores, axis=-1)
        y = self.add(own, "MatMul", scores, parts["value"])
        y = self.add(own, "Transpose", y, perm=[0, 2, 1, 3])
        y = self.shaped(own, y, HIDDEN)
        out = f"{scope}/attention/output"
        y = self.add(out, "Add", self.linear(f"{out}/dense", y, HIDDEN, HIDDEN), x)
        x = self.norm(f"{out}/LayerNorm", y)
        y = self.linear(f"{scope}/intermediate/dense", x, HIDDEN, INNER)
        y = self.gelu(f"{scope}/intermediate/intermediate_act_fn", y)
        y = self.linear(f"{scope}/output/dense", y, INNER, HIDDEN)
        return self.norm(
            f"{scope}/output/LayerNorm", self.add(f"{scope}/output", "Add", y, x)
        )

    def gelu(self, scope: str, x: str) -> str:
        """GELU, written out."""
        y = self.add(scope, "Div", x, self.number(scope, np.float32(2**0.5)))
        y = self.add(scope, "Erf", y)
        y = self.add(scope, "Add", y, self.number(scope, np.float32(1)))
        y = self.add(scope, "Mul", x, y)
        return self.add(scope, "Mul", y, self.number(scope, np.float32(0.5)))

    def model(self, layers: int) -> None:
        """The whole model."""
        scope = "/bert/embeddings"
        table = self.weight("bert.embeddings.word_embeddings.weight", WORDS, HIDDEN)
        words = self.add(f"{scope}/word_embeddings", "Gather", table, "input_ids")
        table = self.weight(
            "bert.embeddings.position_embeddings.weight", PLACES, HIDDEN
        )
        count = self.add(scope, "Squeeze", self.extent(scope, "input_ids", 1))
        numbers = [self.number(scope, value) for value in (0, 1)]
        places = self.add(scope, "Range", numbers[0], count, numbers[1])
        places = self.add(f"{scope}/position_embeddings", "Gather", table, places)
        x = self.add(scope, "Add", words, places)
        x = self.norm(f"{scope}/LayerNorm", x)
        mask = self.add(
            "/bert", "Unsqueeze", "attention_mask", self.number("/bert", [1, 2])
        )
        mask = self.add("/bert", "Cast", mask, to=TensorProto.FLOAT)
        mask = self.add("/bert", "Sub", self.number("/bert", np.float32(1)), mask)
        low = self.number("/bert", np.finfo(np.float32).min)
        mask = self.add("/bert", "Mul", mask, low)
        for number in range(layers):
            x = self.layer(number, x, mask)
        self.nodes.append(
            helper.make_node("Identity", [x], ["last_hidden_state"], "end")
        )


class Dynamo(Draft):
    """Nodes as ``torch.onnx.export(dynamo=True)`` writes them."""

    #: The classes of modules by the last word of their path.
    CLASSES = {
        "bert": "transformers.models.bert.modeling_bert.BertModel",
        "embeddings": "transformers.models.bert.modeling_bert.BertEmbeddings",
        "encoder": "transformers.models.bert.modeling_bert.BertEncoder",
        "attention": "transformers.models.bert.modeling_bert.BertAttention",
        "self": "transformers.models.bert.modeling_bert.BertSelfAttention",
        "intermediate": "transformers.models.bert.modeling_bert.BertIntermediate",
        "output": "transformers.models.bert.modeling_bert.BertOutput",
        "LayerNorm": "torch.nn.modules.normalization.LayerNorm",
    }

    def add(self, scope: str, kind: str, *inputs: str, **attrs: Any) -> str:
        """The output of a new node that says which modules it stands in."""
        output = f"val_{len(self.nodes)}"
        node = helper.make_node(
            kind, list(inputs), [output], f"node_{kind}_{len(self.nodes)}", **attrs
        )
        words = scope.split(".") if scope else []
        paths = [".".join(words[: n + 1]) for n in range(len(words))]
        # A list runs nothing itself: the path of a layer follows that of the encoder.
        paths = [path for path in paths if not path.endswith(".layer")]
        kinds = [self.kind(path.rpartition(".")[2]) for path in paths]
        for key, value in (
            ("name_scopes", ["", *paths, output]),
            ("class_hierarchy", ["__main__.Net", *kinds, f"aten.{kind.lower()}"]),
        ):
            entry = node.metadata_props.add()
            entry.key, entry.value = f"pkg.torch.onnx.{key}", repr(value)
        self.nodes.append(node)
        return output

    def kind(self, word: str) -> str:
        """The class of a module."""
        if word.isdigit():
            return "transformers.models.bert.modeling_bert.BertLayer"
        return self.CLASSES.get(word, "torch.nn.modules.linear.Linear")

    def linear(self, scope: str, x: str, inputs: int, outputs: int) -> str:
        """A dense layer, whose weight was turned when the model was optimized."""
        weight = self.weight(f"val_w{len(self.stored)}", inputs, outputs)
        y = self.add(scope, "MatMul", x, weight)
        return self.add(scope, "Add", y, self.weight(f"{scope}.bias", outputs))

    def norm(self, scope: str, x: str) -> str:
        """Layer normalization of the last axis."""
        names = [self.weight(f"{scope}.{part}", HIDDEN) for part in ("weight", "bias")]
        return self.add(
            scope, "LayerNormalization", x, *names, axis=-1, epsilon=1e-12, stash_type=1
        )

    def layer(self, number: int, x: str, mask: str, shapes: list[str]) -> str:
        """One layer of the encoder."""
        scope = f"bert.encoder.layer.{number}"
        own = f"{scope}.attention.self"
        parts = []
        for name in ("query", "key", "value"):
            y = self.linear(f"{own}.{name}", x, HIDDEN, HIDDEN)
            y = self.add(own, "Reshape", y, shapes[0], allowzero=1)
            parts.append(self.add(own, "Transpose", y, perm=[0, 2, 1, 3]))
        query, key, value = parts
        key = self.add(own, "Transpose", key, perm=[0, 1, 3, 2])
        query, key = (self.add(own, "Mul", one, "root") for one in (query, key))
        scores = self.add(own, "Add", self.add(own, "MatMul", query, key), mask)
        scores = self.add(own, "Softmax", scores, axis=-1)
        wrong = self.add(own, "IsNaN", scores)
        scores = self.add(own, "Where", wrong, "zero", scores)
        y = self.add(own, "MatMul", scores, value)
        y = self.add(own, "Transpose", y, perm=[0, 2, 1, 3])
        y = self.add(own, "Reshape", y, shapes[1], allowzero=1)
        out = f"{scope}.attention.output"
        y = self.add(out, "Add", self.linear(f"{out}.dense", y, HIDDEN, HIDDEN), x)
        x = self.norm(f"{out}.LayerNorm", y)
        y = self.linear(f"{scope}.intermediate.dense", x, HIDDEN, INNER)
        y = self.add(f"{scope}.intermediate", "Gelu", y, approximate="none")
        y = self.linear(f"{scope}.output.dense", y, INNER, HIDDEN)
        return self.norm(
            f"{scope}.output.LayerNorm", self.add(f"{scope}.output", "Add", y, x)
        )

    def model(self, layers: int) -> None:
        """The whole model."""
        self.store("root", np.float32((HIDDEN // HEADS) ** -0.25))
        self.store("zero", np.float32(0))
        self.store("low", np.finfo(np.float32).min)
        for name, value in (("n0", 0), ("n1", 1), ("axes", [1, 2]), ("axis", [0])):
            self.store(name, np.array(value))
        self.store("heads", np.array([HEADS, HIDDEN // HEADS]))
        self.store("hidden", np.array([HIDDEN]))
        batch = self.add("bert", "Shape", "input_ids", start=0, end=1)
        seq = self.add("bert", "Shape", "input_ids", start=1, end=2)
        shapes = [
            self.add("bert", "Concat", batch, seq, last, axis=0)
            for last in ("heads", "hidden")
        ]
        scope = "bert.embeddings"
        table = self.weight(f"{scope}.word_embeddings.weight", WORDS, HIDDEN)
        words = self.add(f"{scope}.word_embeddings", "Gather", table, "input_ids")
        table = self.weight(f"{scope}.position_embeddings.weight", PLACES, HIDDEN)
        count = self.add(scope, "Squeeze", seq)
        places = self.add(scope, "Range", "n0", count, "n1")
        places = self.add(f"{scope}.position_embeddings", "Gather", table, places)
        x = self.norm(f"{scope}.LayerNorm", self.add(scope, "Add", words, places))
        mask = self.add("bert", "Unsqueeze", "attention_mask", "axes")
        mask = self.add("bert", "Cast", mask, to=TensorProto.BOOL)
        mask = self.add("bert", "Where", mask, "zero", "low")
        for number in range(layers):
            x = self.layer(number, x, mask, shapes)
        self.nodes[-1].output[0] = "last_hidden_state"


EXPORTERS: dict[str, Callable[[], Any]] = {"TorchScript": TorchScript, "dynamo": Dynamo}


def generated(path: Path) -> tuple[str, float, float]:
    """The text of the module, and the seconds that it and black alone took."""
    import black

    from burn_import.pipeline import import_model

    started = process_time()
    text = import_model(path).text
    done = process_time()
    black.format_str(text, mode=black.Mode())
    return text, done - started, process_time() - done


def main() -> None:
    """Print a table of both exporters at several numbers of layers."""
    parser = argparse.ArgumentParser(description="Measures the generation of a BERT.")
    parser.add_argument("--layers", type=int, nargs="+", default=[12, 24, 48])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", action="store_true", help="show where time goes")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        rows = []
        for name in EXPORTERS:
            rows += measured(name, options.layers, options.rounds, Path(folder))
            if options.profile:
                profiled(name, options.layers[0], Path(folder))
        print_table(HEAD, rows)
        late = [row[0] for row in rows if row[1] == "12" and float(row[4]) > BAR]
        if late:
            parser.exit(1, f"more than {BAR} s: {', '.join(late)}\n")


def drafted(name: str, layers: int, folder: Path) -> tuple[Path, int]:
    """The file of a model, and the number of its nodes."""
    draft = EXPORTERS[name]()
    draft.model(layers)
    return draft.save(folder / f"{name.lower()}.onnx"), len(draft.nodes)


def measured(
    name: str, layers: list[int], rounds: int, folder: Path
) -> list[list[str]]:
    """The lines of the table for one exporter: the best of some rounds."""
    rows, before = [], 0.0
    for count in layers:
        path, nodes = drafted(name, count, folder)
        generated(path)  # what is loaded once
        results = [generated(path) for _ in range(rounds)]
        seconds = min(taken for _, taken, _ in results)
        black = min(taken for _, _, taken in results)
        lines = results[0][0].count("\n")
        growth = f"{seconds / before:.1f}" if before else ""
        row = [name, str(count), str(nodes), str(lines), f"{seconds:.2f}"]
        rows.append([*row, f"{black:.2f}", growth])
        before = seconds
    return rows


def profiled(name: str, layers: int, folder: Path) -> None:
    """Print where the time of one generation goes."""
    path, _ = drafted(name, layers, folder)
    profile = cProfile.Profile()
    profile.runcall(generated, path)
    pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
