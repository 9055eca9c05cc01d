"""How many nodes and recovered operators each model has, so that none gets lost.

``counts.json`` holds them for the models under ``tests/golden``, and for those of the
zoo, which are not in the repository. ``--update-golden`` writes what it can read anew.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from burn_import.frontends.onnx import read
from burn_import.passes import simplify
from burn_ir import Graph, build
from tests.zoo.known import REFUSED
from tests.zoo.recorded import zoo_cases

HERE = Path(__file__).parent
RECORD = HERE / "counts.json"
GOLDEN = HERE.parent.parent / "golden"
#: Parts of the zoo that are models, and no traps.
FOLDERS = ("arch", "real", "quant", "pytorch", "sklearn")
#: Operators that stand for what a person would write: layers, and one call for many.
RECOVERED = frozenset(
    {
        *("Attention", "BatchNormalization", "Conv", "ConvTranspose", "DepthToSpace"),
        *(
            "Conv1D",
            "Einsum",
            "Embedding",
            "GRU",
            "Gelu",
            "GroupNormalization",
            "HardSwish",
        ),
        *("InstanceNormalization", "LSTM", "LayerNormalization", "Linear", "Mish"),
        *("QuickGelu", "RMSNormalization", "RNN", "Roll", "RotaryEmbedding", "Softmax"),
        *("MultiheadAttention", "Softplus", "SpaceToDepth", "Swish"),
    }
)


def models(zoo: Path) -> Iterator[tuple[str, Path]]:
    """Return the models that are at hand by name."""
    for path in sorted(GOLDEN.glob("*/model.onnx")):
        yield f"golden/{path.parent.name}", path
    if (zoo / "manifest.json").is_file():
        for case in zoo_cases(zoo):
            if case.name.split("/")[0] in FOLDERS and case.name not in REFUSED:
                yield case.name, case.path


def counted(path: Path) -> dict[str, Any]:
    """Return the numbers of nodes before and after, and of recovered operators."""
    graph = build(read(path))
    after = list(nodes(simplify(graph)))
    kinds = Counter(name for name in after if name in RECOVERED)
    return {
        "nodes": [sum(1 for _ in nodes(graph)), len(after)],
        "recovered": dict(sorted(kinds.items())),
    }


def nodes(graph: Graph) -> Iterator[str]:
    """Return the operator of every node, those in bodies included."""
    for node in graph.nodes:
        yield type(node.op).__name__
        for body in node.op.bodies().values():
            yield from nodes(body)


@pytest.mark.thorough
def test_counts(request: pytest.FixtureRequest) -> None:
    actual = {name: counted(path) for name, path in models(zoo_of(request))}
    record: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))
    if request.config.getoption("--update-golden"):
        lines = [
            f"  {json.dumps(name)}: {json.dumps(entry)}"
            for name, entry in sorted({**record, **actual}.items())
        ]
        RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
        return
    assert {n: e for n, e in actual.items() if e != record.get(n)} == {}


def zoo_of(request: pytest.FixtureRequest) -> Path:
    """Return the folder of the zoo."""
    zoo: Path = request.config.getoption("--zoo")
    return zoo
