"""Measures imports: time and memory of whole ``burn-import`` processes.

    python -m benchmarks.importer.import_time [FOLDER ...] [--only NAME] [--large]

Besides the models of ``cases.py`` it takes those below each FOLDER; ``--large`` adds a
generated model of 400 MB, with its weights inside and beside it.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import sleep

import numpy as np

from benchmarks.cases import IMPORT, Case, Children, cases, print_table

HEAD = ("model", "weights MB", "lines", "seconds", "anonymous MB", "resident MB")
LAYERS = 50
WIDTHS = (1024, 2048)


def main() -> None:
    """Print a table of imports."""
    parser = argparse.ArgumentParser(description="Measures imports.")
    parser.add_argument("folders", nargs="*", help="folders with more .onnx files")
    parser.add_argument("--only", default="", help="part of the names of models")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large", action="store_true", help="add a model of 400 MB")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        results = cases(options.folders, options.only)
        if options.large:
            results += list(large(Path(folder)))
        children = Children(Path(folder))
        for name, code in (("import numpy", ""), ("import burn", "import burn")):
            taken = startup(children, code or "import numpy")
            print(f"{name}: {taken * 1000:.0f} ms more than Python alone")
        version = [children.seconds(IMPORT, "--version") for _ in range(9)]
        print(f"burn-import --version: {median(version) * 1000:.0f} ms\n")
        rows = (row(case, children, Path(folder), options.rounds) for case in results)
        print_table(HEAD, rows)


def startup(children: Children, code: str) -> float:
    """The seconds that ``code`` takes in a new process, Python's own start aside."""
    children.seconds(code)
    pairs = [(children.seconds(code), children.seconds("")) for _ in range(9)]
    return median(whole for whole, _ in pairs) - median(bare for _, bare in pairs)


def row(case: Case, children: Children, folder: Path, rounds: int) -> list[str]:
    """One line of the table: medians over ``rounds`` imports into an empty place."""
    times = []
    module = folder / "measured.py"
    record = module.with_suffix(".safetensors")
    arguments = (str(case.path), "-o", str(module))
    children.seconds(IMPORT, *arguments)  # compiles what only this model needs
    for _ in range(rounds):
        module.unlink()
        record.unlink(missing_ok=True)
        times.append(children.seconds(IMPORT, *arguments))
    size = record.stat().st_size if record.exists() else 0
    lines = len(module.read_text("ascii").splitlines())
    module.unlink()
    record.unlink(missing_ok=True)
    anonymous, resident = peaks(children, *arguments)
    module.unlink()
    record.unlink(missing_ok=True)
    figures = f"{size / 1e6:.1f}", str(lines), f"{median(times):.2f}"
    return [case.name, *figures, f"{anonymous:.0f}", f"{resident:.0f}"]


def peaks(children: Children, *arguments: str) -> tuple[float, float]:
    """The most memory in MB that an import held: anonymous, and with mapped files.

    The kernel keeps the second as the high-water mark; the first, which is what the
    import cannot do without, is read every millisecond.
    """
    process = children.start(IMPORT, *arguments)
    status = Path(f"/proc/{process.pid}/status")
    anonymous = resident = 0
    while process.poll() is None:
        text = status.read_text()
        for kind, size in re.findall(r"(RssAnon|VmHWM):\s+(\d+) kB", text):
            if kind == "RssAnon":
                anonymous = max(anonymous, int(size))
            else:
                resident = max(resident, int(size))
        sleep(0.001)
    process.communicate()
    return anonymous / 1000, resident / 1000


def large(folder: Path) -> Iterator[Case]:
    """A chain of 50 products with matrices of 8 MB, stored in one file and in two."""
    import onnx
    from onnx import helper, numpy_helper

    generator = np.random.default_rng(0)
    nodes, stored, value = [], [], "x"
    for layer in range(LAYERS):
        shape = WIDTHS if layer % 2 == 0 else WIDTHS[::-1]
        numbers = generator.standard_normal(shape, np.float32)
        stored.append(numpy_helper.from_array(numbers, f"layers.{layer}.weight"))
        product, result = f"product{layer}", f"result{layer}"
        nodes.append(helper.make_node("MatMul", [value, stored[-1].name], [product]))
        nodes.append(helper.make_node("Relu", [product], [result]))
        value = result
    ends = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", 1024])
        for name in ("x", value)
    ]
    graph = helper.make_graph(nodes, "large", ends[:1], ends[1:], stored)
    opset = helper.make_opsetid("", 21)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=10)
    for name, external in (("large_inside", False), ("large_beside", True)):
        path = folder / f"{name}.onnx"
        onnx.save(
            model, path, save_as_external_data=external, location="large_beside.data"
        )
        yield Case(name, path)


if __name__ == "__main__":
    main()
