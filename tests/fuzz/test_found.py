"""Small graphs that random ones were shrunk to: all ways to run them are right now."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.fuzz.checks import report_of
from tests.fuzz.generator import FuzzCase, generate
from tests.fuzz.report import model_of
from tests.fuzz.shrink import measured

FLOATS = np.random.default_rng(5).standard_normal(48).astype(np.float32)


def floats(*shape: int) -> Any:
    """Random numbers of a shape, the same in every call."""
    return FLOATS[: int(np.prod(shape))].reshape(shape)


def case_of(text: str, *feeds: Mapping[str, Any], profile: str = "mixed") -> FuzzCase:
    """The case of a model as text, with inputs for three runs or the same for all.

    Gradients by weights are compared as well in the profile "networks".
    """
    runs = [dict(one) for one in (*feeds, *feeds[:1] * 2)][:3]
    case = measured(FuzzCase(0, model_of(text), runs, {}, profile=profile))
    assert case is not None, "onnxruntime does not run it"
    return case


def header(opset: int) -> str:
    """The header of a model as text."""
    domains = f'"" : {opset}, "com.microsoft" : 1, "ai.onnx.ml" : 3'
    return f"<ir_version: 9, opset_import: [{domains}]>\n"


CASES: dict[str, tuple[int, str, dict[str, Any]]] = {
    "features of a number that only the run tells are filled up": (
        18,
        """g (float[n,m] x) => (float[k,l] y)
        { y = ai.onnx.ml.FeatureVectorizer <inputdimensions: ints = [2, 4]> (x, x) }""",
        {"x": floats(5, 3)},
    ),
    "features whose rank only the run tells": (
        18,
        """g (float[3] x, float[2,3] y) => (float[k,l] v, float[m,n] w)
        { i = Constant <value = int64 {0}> ()
          j = Constant <value = int64 {1}> ()
          s = SequenceConstruct (x, y)
          a = SequenceAt (s, i)
          b = SequenceAt (s, j)
          v = ai.onnx.ml.FeatureVectorizer <inputdimensions: ints = [4, 2]> (a, a)
          w = ai.onnx.ml.FeatureVectorizer <inputdimensions: ints = [4, 2]> (b, b) }
        """,
        {"x": floats(3), "y": floats(2, 3)},
    ),
    "a leaf of a tree that lists its only target several times": (
        18,
        """g (float[n,1] x) => (float[n,1] y)
        { y = ai.onnx.ml.TreeEnsembleRegressor <
            n_targets = 1, nodes_treeids: ints = [0, 0, 0],
            nodes_nodeids: ints = [0, 1, 2], nodes_featureids: ints = [0, 0, 0],
            nodes_modes: strings = ["BRANCH_LEQ", "LEAF", "LEAF"],
            nodes_values: floats = [0.0, 0.0, 0.0],
            nodes_truenodeids: ints = [1, 0, 0],
            nodes_falsenodeids: ints = [2, 0, 0],
            target_treeids: ints = [0, 0, 0, 0], target_ids: ints = [0, 0, 0, 0],
            target_nodeids: ints = [1, 1, 2, 2],
            target_weights: floats = [1.0, 1.0, 2.0, 2.0] > (x) }""",
        {"x": floats(4, 1)},
    ),
    "the padding of a kernel whose extents only the run tells": (
        8,
        """g (float[1,2,n,m] x, float[2,1,k,l] w) => (float[a,b,c,d] y)
        { y = ConvTranspose <auto_pad: string = "SAME_LOWER", group: int = 2> (x, w) }
        """,
        {"x": floats(1, 2, 4, 4), "w": floats(2, 1, 2, 3)},
    ),
    "rounding of an angle near a singularity": (
        13,
        """g (float[n] x) => (float[k] y)
        { v4 = Acos (x)
          v5 = Tan (v4)
          y = Sin (v5) }""",
        {"x": np.linspace(0.015, 0.075, 9, dtype=np.float32)},
    ),
    "the extent of operands with different names": (
        18,
        """g (float[n] x, float[m] y) => (float[k] z) <int64[1] s = {-1}>
        { t = Mean (x, y, x)
          z = Reshape (t, s) }""",
        {"x": floats(1), "y": floats(3)},
    ),
    "stored boxes do not take the name of a method of modules": (
        18,
        """g (float[1,1,3] x) => (int64[n,m] y)
        <float[1,3,4] boxes001 = {0,0,1,1,0,0,1,0.9,2,2,3,3}, int64 most = {3}>
        { y = NonMaxSuppression (boxes001, x, most) }""",
        {"x": floats(1, 1, 3)},
    ),
    "a Transpose of an item of unknown rank turns all axes": (
        18,
        """g (seq(float[]) x) => (seq(float[]) y) {
          y = SequenceMap (x) <body = b (float[] i) => (float[] t) {
            t = Transpose (i)
          }>
        }""",
        {"x": [floats(2, 3), floats(4, 3)]},
    ),
    "all axes of items of unknown rank in front, or behind": (
        18,
        """g (seq(float[]) x) => (seq(float[]) y, seq(float[]) z) {
          y = SequenceMap (x) <body = b (float[] i) => (float[] t) {
            t = Flatten <axis: int = 2> (i)
          }>
          z = SequenceMap (x) <body = c (float[] j) => (float[] u) {
            u = Flatten <axis: int = -2> (j)
          }>
        }""",
        {"x": [floats(2, 3), floats(4, 3)]},
    ),
    "Softmax of all axes from one on, of an item of unknown rank": (
        12,
        """g (seq(float[]) x) => (float[n,m] y, float[k,l] z) <int64 first = {0}> {
          item = SequenceAt (x, first)
          v = Sigmoid (item)
          y = LogSoftmax <axis: int = 0> (v)
          z = Softmax (v)
        }""",
        {"x": [floats(2, 3)]},
    ),
    "heads that only the run counts": (
        18,
        """g (float[n,l,m] x, int64[1] at, seq(float[]) c, float[k,2] s)
          => (float[a,b,d] y, float[e,f,h] z) {
          y = com.microsoft.RotaryEmbedding (x, at, s, s)
          cos = ConcatFromSequence <axis: int = 0> (c)
          z = com.microsoft.RotaryEmbedding (y, at, cos, s)
        }""",
        {
            "x": floats(2, 3, 8),
            "at": np.zeros(1, np.int64),
            "c": [floats(4, 2)],
            "s": floats(4, 2),
        },
    ),
    "layers of the same weights with other options are functions of them": (
        17,
        """g (float[n,3,2,2] x) => (float[a,b,c,d] y, float[e,f,h,i] z)
        <float[3] s = {1,2,3}, float[3] t = {0,1,2}>
        { y = BatchNormalization (x, s, t, t, s)
          z = BatchNormalization <epsilon: float = 0.5> (x, s, t, t, s) }""",
        {"x": floats(2, 3, 2, 2)},
    ),
    "layers of the same weights have the rank of their operand": (
        17,
        """g (float[n,3,2,2] x) => (float[a,b,c,d] y, float[e,f,h] z)
        <float[3] s = {1,2,3}, float[3] t = {0,1,2}, int64[3] to = {0,3,-1}>
        { y = InstanceNormalization (x, s, t)
          flat = Reshape (x, to)
          z = InstanceNormalization (flat, s, t) }""",
        {"x": floats(2, 3, 2, 2)},
    ),
    "a layer in the way of a place in a list": (
        17,
        """g (float[n,3,2,2] x) => (float[a,b,c,d] y)
        <float[3] s = {1,2,3}, float[3] t = {0,1,2}, float[3] u = {3,1,2}>
        { ["/block.0/block.0/BatchNormalization_0"]
          v = BatchNormalization (x, s, t, t, s)
          ["/block.0/BatchNormalization_1"]
          w = BatchNormalization (v, s, u, t, u)
          ["/block.0/block.1/BatchNormalization_2"]
          y = BatchNormalization (w, u, t, t, s) }""",
        {"x": floats(2, 3, 2, 2)},
    ),
    "a scope inside of a layer": (
        17,
        """g (float[n,3,2,2] x) => (float[a,b,c,d] y, int64[e,f] z)
        <float[3] s = {1,2,3}, float[3] t = {0,1,2}, float[3,1,1] s2 = {1,2,3},
         float[1,3,4] boxes = {0,0,1,1,0,0,1,0.9,2,2,3,3}, int64 most = {3},
         int64[3] to = {1,1,-1}>
        { ["/block.0/self/GlobalMaxPool_0"] p = GlobalMaxPool (x)
          ["/block.0/self/Reshape_1"] r = Reshape (p, to)
          ["/block.0/self/NonMaxSuppression_2"] z = NonMaxSuppression (boxes, r, most)
          ["/block.0/BatchNormalization_3"] v = BatchNormalization (x, s, t, t, s)
          ["/block.0/block.0/PRelu_4"] y = PRelu (v, s2) }""",
        {"x": floats(1, 3, 2, 2)},
    ),
    "scales that are one number beside zero points of columns": (
        13,
        """g (uint8[n,3] x) => (uint8[a,b] y)
        <uint8[3,2] w = {1,2,3,4,5,6}, float s = {0.1}, uint8[2] zero = {3,4},
         uint8 z = {1}>
        { y = QLinearMatMul (x, s, z, w, s, zero, s, z) }""",
        {"x": np.arange(6, dtype=np.uint8).reshape(2, 3)},
    ),
    "signals without an axis of real parts": (
        17,
        """g (float[n,16] x) => (float[a,b,c,d] y, float[e,f,h,i] z)
        <int64 step = {4}, int64 length = {8}, float[8] w = {1,2,3,4,5,6,7,8}>
        { y = STFT (x, step, , length)
          z = STFT <onesided: int = 0> (x, step, w) }""",
        {"x": floats(2, 16)},
    ),
    "sequences of a constant": (
        13,
        """g (float[n,3] x) => (int64[k] y) <int64 last = {-1}>
        { shape = Shape (x)
          sequence = SplitToSequence (shape)
          y = SequenceAt (sequence, last) }""",
        {"x": floats(2, 3)},
    ),
    "no elements: Hardmax": (
        13,
        "g (float[3,n] x) => (float[a,b] y) { y = Hardmax (x) }",
        {"x": floats(3, 0)},
    ),
    "no elements: LRN": (
        13,
        "g (float[1,2,3,n] x) => (float[a,b,c,d] y) { y = LRN <size: int = 3> (x) }",
        {"x": floats(1, 2, 3, 0)},
    ),
    "no elements: MaxRoiPool": (
        13,
        """g (float[1,2,3,n] x) => (float[a,b,c,d] y) <float[1,5] rois = {0,0,0,1,1}>
        { y = MaxRoiPool <pooled_shape: ints = [1,2]> (x, rois) }""",
        {"x": floats(1, 2, 3, 0)},
    ),
    "no channels: MaxRoiPool": (
        13,
        """g (float[1,k,3,n] x) => (float[a,b,c,d] y) <float[1,5] rois = {0,0,0,1,1}>
        { y = MaxRoiPool <pooled_shape: ints = [1,2]> (x, rois) }""",
        {"x": floats(1, 0, 3, 0)},
    ),
    "no elements: Resize": (
        19,
        """g (float[1,2,3,n] x) => (float[a,b,c,d] y, float[e,f,h,i] z)
        <int64[4] to = {1,2,6,0}>
        { y = Resize (x, , , to)
          z = Resize <keep_aspect_ratio_policy: string = "not_larger"> (x, , , to) }""",
        {"x": floats(1, 2, 3, 0)},
    ),
    "no elements: TfIdfVectorizer": (
        9,
        """g (int64[3,n] x) => (float[a,b] y)
        { y = TfIdfVectorizer <max_gram_length: int = 1, min_gram_length: int = 1,
          max_skip_count: int = 0, mode: string = "TF", ngram_counts: ints = [0],
          ngram_indexes: ints = [0,1], pool_int64s: ints = [2,3]> (x) }""",
        {"x": np.zeros((3, 0), np.int64)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_found(name: str) -> None:
    opset, text, feeds = CASES[name]
    report = report_of(case_of(header(opset) + text, feeds), thorough=True)
    assert (report.kind, report.findings) == ("right", []), report.detail


@pytest.mark.parametrize(
    ("profile", "seed"),
    # A body of one module runs a layer of another, which itself reads the weights.
    (("networks", 801557),),
)
def test_generated_again(profile: str, seed: int) -> None:
    """Graphs that do not fail any more once they are shrunk to less."""
    report = report_of(generate(seed, profile))
    assert (report.kind, report.findings) == ("right", []), report.detail
