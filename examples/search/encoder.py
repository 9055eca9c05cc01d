"""An encoder of text to try the example with: it is computed from the texts themselves.

Words that occur in the same texts get similar vectors (latent semantic analysis).
"""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx.parser
from onnx import numpy_helper

WIDTH = 96
ENCODER = """
<ir_version: 10, opset_import: ["": 20]>
encoder (int64[batch, words] ids) => (float[batch, 96] embedding)
    <int64[1] axes = {1}>
{
    vectors = Gather(table, ids)
    total = ReduceSum<keepdims = 0>(vectors, axes)
    embedding = LpNormalization<axis = -1, p = 2>(total)
}
"""


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case, without endings."""
    words = re.findall(r"[a-z][a-z0-9]+", text.lower())
    return [re.sub(r"(?<=\w{3})(ing|ed|es|s|e)$", "", word) for word in words]


def encode(
    texts: Sequence[str], vocabulary: dict[str, int]
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Return the numbers of known words, int64[texts, words]; 0 fills the rows."""
    rows = [[vocabulary.get(word, 0) for word in split_words(t)] for t in texts]
    ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for row, numbers in zip(ids, rows, strict=True):
        row[: len(numbers)] = numbers
    return ids


def write_model(path: Path, texts: Sequence[str]) -> dict[str, int]:
    """Write an encoder of such texts; return its vocabulary."""
    counts = [Counter(split_words(text)) for text in texts]
    spread = Counter(word for count in counts for word in count)
    common = [word for word, number in spread.items() if number > 1]
    vocabulary = {word: number for number, word in enumerate(sorted(common), 1)}
    matrix = np.zeros((len(vocabulary) + 1, len(texts)), np.float32)
    for column, count in enumerate(counts):
        for word in count.keys() & vocabulary.keys():
            matrix[vocabulary[word], column] = 1 + np.log(count[word])
    rarity = np.log(len(texts) / (1 + (matrix > 0).sum(1, keepdims=True)))
    matrix *= rarity
    matrix /= np.linalg.norm(matrix, axis=0) + 1e-6
    left, _, _ = np.linalg.svd(matrix, full_matrices=False)
    table = (left[:, :WIDTH] * rarity).astype(np.float32)
    table[0] = 0
    model = onnx.parser.parse_model(ENCODER)
    model.graph.initializer.append(numpy_helper.from_array(table, "table"))
    onnx.save(model, path)
    return vocabulary
