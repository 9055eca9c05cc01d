"""Turns a pipeline of scikit-learn into Python source, and compares the two.

Run it as ``python examples/tabular/run.py``; it writes ``generated/`` beside itself. It
needs scikit-learn and skl2onnx, which write the ONNX file. The generated module
needs neither.
"""

import sys
import timeit
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from skl2onnx import to_onnx
from sklearn.datasets import load_wine
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

import burn
from burn_import import ModelGen, Options

HERE = Path(__file__).parent
OUT = HERE / "generated"


def train(rows: Any, kinds: Any) -> Any:
    """Return a pipeline that tells kinds of wine by 13 measurements.

    A measurement that is missing (NaN) counts as the median.
    """
    trees = GradientBoostingClassifier(n_estimators=40, max_depth=2, random_state=0)
    return make_pipeline(SimpleImputer(strategy="median"), trees).fit(rows, kinds)


def generate(pipeline: Any, example: Any) -> Any:
    """Return the class generated from the pipeline."""
    OUT.mkdir(exist_ok=True)
    file = OUT / "wine.onnx"
    options = {"zipmap": False}  # probabilities as an array
    proto = to_onnx(pipeline, example, options=options, target_opset=17)
    file.write_bytes(proto.SerializeToString())
    names = Options(class_name="Wine")
    ModelGen().input(str(file)).out_dir(str(OUT)).options(names).run_from_script()
    sys.path.insert(0, str(OUT))
    return import_module("wine").Wine


def main() -> dict[str, float]:
    """Return how well and how fast both are; print it."""
    data: Any = load_wine()
    table = data.data.astype(np.float32)
    table[np.random.default_rng(0).random(table.shape) < 0.05] = np.nan
    rows, unseen, kinds, answers = train_test_split(table, data.target, random_state=0)
    pipeline = train(rows, kinds)
    model = burn.compile(generate(pipeline, rows[:1]).load())
    expected = pipeline.predict_proba(unseen)
    labels, probabilities = (x.numpy() for x in model(burn.tensor(unseen)))
    for row, sure in zip(unseen[:5], probabilities, strict=False):
        bars = " ".join(f"{'#' * round(10 * p):<10}" for p in sure)
        print(f"alcohol {row[0]:5.2f}, color {row[9]:5.2f}   {bars}")
    one = unseen[:1]
    result = {
        "right": float((labels == answers).mean()),
        "difference": float(np.abs(probabilities - expected).max()),
        "scikit-learn": min(
            timeit.repeat(lambda: pipeline.predict_proba(one), number=50)
        ),
        "burn": min(timeit.repeat(lambda: model(burn.tensor(one)), number=50)),
    }
    print(f"{result['right']:.1%} of unseen wines are named correctly")
    print(f"largest difference of a probability: {result['difference']:.1e}")
    for name in ("scikit-learn", "burn"):
        print(f"one wine by {name:<13} {result[name] / 50 * 1e6:5.0f} us")
    return result


if __name__ == "__main__":
    main()
