"""Which operators, at which version, random graphs have, without any checks.

``python -m tests.fuzz.coverage --seeds 0 500`` generates 500 graphs of each profile.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator

import onnx

from burn_ir import operators
from tests.fuzz.generator import PROFILES, generate
from tests.fuzz.generator.case import OPSETS
from tests.strategies.registry import Key

#: The versions of each operator set that graphs are of.
SETS = {"": OPSETS, "ai.onnx.ml": range(2, 6), "com.microsoft": range(1, 2)}
Versioned = tuple[str, str, int]


def version_at(key: Key, opset: int) -> int | None:
    """The version of an operator at an opset; None if it has none there."""
    op = operators().get(key)
    return max((v for v in op.versions if v <= opset), default=None) if op else None


def supported() -> set[Versioned]:
    """The operators and versions that graphs of these operator sets may have."""
    keys = (key for key in operators() if key[0] in SETS)
    pairs = ((key, opset) for key in keys for opset in SETS[key[0]])
    return {
        (*key, version)
        for key, opset in pairs
        if (version := version_at(key, opset)) and not _is_gone(key, opset)
    }


def _is_gone(key: Key, opset: int) -> bool:
    """Return whether ONNX has no such operator at an opset, or deprecates it."""
    if key[0]:
        return False
    if not onnx.defs.has(key[1], opset, ""):
        return True
    return bool(onnx.defs.get_schema(key[1], opset, "").deprecated)


def versions_in(model: onnx.ModelProto) -> Iterator[Versioned]:
    """The operators of a model with their versions, those of functions as well."""
    opsets = {one.domain: one.version for one in model.opset_import}
    nodes = [*model.graph.node, *(n for f in model.functions for n in f.node)]
    while nodes:
        node = nodes.pop()
        version = version_at((node.domain, node.op_type), opsets.get(node.domain, 1))
        if version is not None:
            yield node.domain, node.op_type, version
        for attribute in node.attribute:
            nodes.extend(attribute.g.node)


def work(profile: str, seeds: range) -> None:
    """Print the operators of each graph as a line of JSON, in a process of its own."""
    for seed in seeds:
        results = sorted(set(versions_in(generate(seed, profile).model)))
        print(json.dumps(results), flush=True)


def counts(profiles: Iterable[str], seeds: range) -> Counter[Versioned]:
    """Return the number of graphs with each operator, by version.

    Graphs whose trial runs end the process, as onnxruntime sometimes does, count none.
    """
    results: Counter[Versioned] = Counter()
    for profile in profiles:
        rest = seeds
        while rest:
            lines = _lines(profile, rest)
            results.update(tuple(one) for line in lines for one in json.loads(line))
            if len(lines) < len(rest):
                print(f"{profile} {rest[len(lines)]}: the process ended", flush=True)
            rest = rest[len(lines) + 1 :]
    return results


def _lines(profile: str, seeds: range) -> list[str]:
    command = [sys.executable, "-m", "tests.fuzz.coverage", "--profile", profile]
    command += ["--work", "--seeds", str(seeds.start), str(seeds.stop)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode > 0:
        done.check_returncode()  # an error of ours, not a signal
    return done.stdout.splitlines()


def table(results: Counter[Versioned], graphs: int) -> str:
    """Return the operators that are never generated, and the rare ones."""
    wanted = supported()
    missing = sorted(wanted - results.keys())
    names = {key[:2] for key in wanted}
    never = sorted(names - {key[:2] for key in results})
    lines = [
        f"{graphs} graphs: {len(wanted) - len(missing)} of {len(wanted)} versions of "
        f"{len(names) - len(never)} of {len(names)} operators",
        "never generated at any version:",
        *(f"  {domain}:{name}".replace(" :", " ") for domain, name in never),
        "never generated at these versions:",
    ]
    gaps: dict[str, list[str]] = {}
    for domain, name, version in missing:
        if (domain, name) not in never:
            title = f"{domain}:{name}".lstrip(":")
            gaps.setdefault(title, []).append(str(version))
    lines += [f"  {title:32}{' '.join(v)}" for title, v in gaps.items()]
    return "\n".join(lines)


def main() -> None:
    """Generate graphs and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.coverage")
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 200))
    parser.add_argument("--profile", choices=[*PROFILES, "all"], default="all")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    seeds = range(*options.seeds)
    if options.work:
        work(options.profile, seeds)
        return
    profiles = list(PROFILES) if options.profile == "all" else [options.profile]
    result = counts(profiles, seeds)
    print(table(result, len(seeds) * len(profiles)))


if __name__ == "__main__":
    main()
