"""Malicious or damaged files: nothing is executed, and one clear error is raised."""

import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from burn_ir import InvalidModel, UnreadableFile, UnsupportedModel
from tests.importer.checkpoints.test_files import V, W, opened
from tests.importer.pytorch_files import (
    CONTAINERS,
    Name,
    New,
    PickleWriter,
    Raw,
    Reduce,
    legacy_file,
    raw,
    storage,
    tensor,
    zip_file,
)
from tests.pace import within

TOUCH = "touch pwned"
RUN = f"__import__('os').system({TOUCH!r})"
SYSTEM = Name("os", "system")


#: Functions that ``pickle`` would execute.
PAYLOADS: dict[str, Any] = {
    "os.system": Reduce(SYSTEM, (TOUCH,)),
    "posix.system": Reduce(Name("posix", "system"), (TOUCH,)),
    "eval": Reduce(Name("builtins", "eval"), (RUN,)),
    "exec of Python 2": Reduce(Name("__builtin__", "exec"), (RUN,)),
    "subprocess": Reduce(Name("subprocess", "Popen"), (["touch", "pwned"],)),
    "runpy": Reduce(Name("runpy", "run_path"), ("pwned.py",)),
    "importlib": Reduce(Name("importlib", "import_module"), ("antigravity",)),
    "pickle in pickle": Reduce(Name("pickle", "loads"), (b"cos\nsystem\n.",)),
    "torch.load": Reduce(Name("torch.serialization", "load"), ("/etc/passwd",)),
    "torch.jit.load": Reduce(Name("torch.jit", "load"), ("pwned.pt",)),
    "numpy.load": Reduce(Name("numpy", "load"), ("/etc/passwd",)),
    "timeit": Reduce(Name("timeit", "timeit"), (RUN,)),
    "getattr": Reduce(
        Reduce(Name("builtins", "getattr"), (SYSTEM, "__call__")), (TOUCH,)
    ),
    "attrgetter": Reduce(
        Reduce(Name("operator", "attrgetter"), ("system",)), (SYSTEM,)
    ),
    "dotted name": Reduce(Name("torch", "_utils.os.system"), (TOUCH,)),
    "a called instance": Reduce(New(Name("mine", "Runner")), (TOUCH,)),
    "map": Reduce(Name("builtins", "list"), (Reduce(Name("builtins", "map"), (1, 2)),)),
    "INST": raw(f"(S'{TOUCH}'\nios\nsystem\n"),
    "OBJ": raw(f"(cos\nsystem\nS'{TOUCH}'\no"),
    "EXT1": raw("\x82\x01"),
    "EXT2": raw("\x83\x01\x00"),
    "EXT4": raw("\x84\x01\x00\x00\x00"),
    "PERSID": raw("Pos.system\n"),
    "NEXT_BUFFER": raw("\x97"),
    "BUILD on a name": raw(f"cos\nsystem\n}}S'{TOUCH}'\nNsb"),
    "BUILD on a module's name": raw("cbuiltins\n__dict__\n(S'x'\nNdb"),
    "in a tensor's class": Reduce(
        Name("torch._tensor", "_rebuild_from_type_v2"), (SYSTEM, SYSTEM, (TOUCH,), {})
    ),
    "classes in classes": Reduce(
        Name("torch._tensor", "_rebuild_from_type_v2"),
        (
            Name("torch._tensor", "_rebuild_from_type_v2"),
            *(SYSTEM, (SYSTEM, SYSTEM, (TOUCH,), {}), {}),
        ),
    ),
    "in a storage": Reduce(
        Name("torch.storage", "_load_from_bytes"),
        (PickleWriter().dumps(Reduce(SYSTEM, (TOUCH,))),),
    ),
    "base class": Reduce(Name("copyreg", "_reconstructor"), (SYSTEM, SYSTEM, TOUCH)),
    "type": Reduce(Name("builtins", "type"), ("X", (), {})),
    "__import__": Reduce(Name("builtins", "__import__"), ("antigravity",)),
}


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return an empty current directory, where an attack would leave a file."""
    monkeypatch.chdir(tmp_path)
    modules = set(sys.modules)
    yield tmp_path
    assert not list(tmp_path.rglob("*pwned*"))
    assert not {"antigravity", "timeit", "runpy"} & (set(sys.modules) - modules)


def test_the_payloads_are_live(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("os.system", "eval", "INST", "OBJ", "posix.system"):
        pickle.loads(PickleWriter().dumps(PAYLOADS[name]))  # noqa: S301
        assert (tmp_path / "pwned").exists(), name
        (tmp_path / "pwned").unlink()


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("among", [False, True])
def test_nothing_runs(
    payload: str, container: str, among: bool, directory: Path
) -> None:
    root = PAYLOADS[payload]
    if among:
        root = {"w": tensor("0", W), "hidden": [1, {"x": root}], "v": tensor("1", V)}
    with pytest.raises((UnsupportedModel, InvalidModel), match="^net.pt: "):
        opened(directory, CONTAINERS[container](root))


def test_a_refused_name_is_shown(directory: Path) -> None:
    for name in ("os.system", "subprocess", "torch.load", "getattr"):
        function = PAYLOADS[name].function
        function = getattr(function, "function", function)
        with pytest.raises(UnsupportedModel) as caught:
            opened(directory, zip_file([PAYLOADS[name]]))
        message = str(caught.value)
        assert f"calls {function.module}.{function.name}, which is" in message
        assert "can run code" in message
    odd = Reduce(Name("a\x1b[31m", "b\u202e"), ())
    with pytest.raises(UnsupportedModel, match=r"calls a\\x1b\[31m.b\\u202e, which"):
        opened(directory, zip_file(odd))


def test_objects_do_not_reach_other_files(directory: Path) -> None:
    """Pickled state never becomes the state of one of our objects."""
    slots = (None, {"__class__": SYSTEM, "build": SYSTEM, "__reduce__": SYSTEM})
    kinds = (
        "burn_import.frontends.checkpoints.pickle_values.Instance",
        "torch._utils._rebuild_tensor_v2",
    )
    for kind in kinds:
        module, _, name = kind.rpartition(".")
        root = {"o": New(Name(module, name), (), slots), "w": tensor("0", W)}
        assert list(opened(directory, zip_file(root))) == ["w"]
    assert (
        opened(directory, zip_file([tensor("0", W)]))["0"].array().tolist()
        == W.tolist()
    )


def doubled(levels: int) -> Raw:
    """Return a list of two lists of two lists, and so on."""
    code = b"]q\0"
    for level in range(levels):
        code += b"]q" + bytes([level + 1]) + b"(" + b"h" + bytes([level]) * 1
        code += b"h" + bytes([level]) + b"e"
    return raw(code)


def nested() -> Raw:
    """Return 200 loads of one storage, whose pickle is long."""
    blob = legacy_file(storage("0", W))
    at = blob.index(b"(X\7\0\0\0storage")
    blob = blob[:at] + b"N0" * 100_000 + blob[at:]
    code = PickleWriter(3).code(Name("torch.storage", "_load_from_bytes")) + b"q\0"
    code += b"0" + PickleWriter(3).code(blob) + b"q\1"
    return raw(code + b"h\0h\1\x85R0" * 200)


def shared_module() -> Raw:
    """Return a list of 5000 references to one module without parameters."""
    fields: dict[str, Any] = dict.fromkeys(("_parameters", "_buffers", "_modules"), {})
    fields["_parameters"] = {str(n): None for n in range(1000)}
    code = PickleWriter().code(New(Name("mine", "Net"), (), fields))
    return raw(b"](" + code + b"q\0" + b"h\0" * 5000 + b"e")


BOMBS: dict[str, tuple[Any, str]] = {
    "lists of lists": (doubled(90), "entries when written out"),
    "deep lists": (raw(b"]" * 50_000 + b"a" * 49_999), "nested deeper than 100"),
    "deep marks": (raw(b"(" * 50_000 + b"t" * 49_999), "nested deeper than 1000"),
    "deep tuples": (raw(b")" + b"\x85" * 100_000), "nested deeper than 100"),
    "deep keys": (raw(b"})" + b"\x85" * 100_000 + b"Ns"), "as a key"),
    "a list in itself": (raw(b"]q\0h\0a"), "nested deeper than 100"),
    "a dict in itself": (raw(b"}q\0X\1\0\0\0ah\0s"), "nested deeper than 100"),
    "colliding keys": (
        {"x": raw(b"}" + PickleWriter().code(2**61 - 1) + b"Ns")},
        "as a key",
    ),
    "copies": (
        raw(
            b"ccollections\nOrderedDict\nq\1](" + b"K\1K\2\x86" * 5000 + b"e\x85q\2"
            b"00" + b"h\1h\2R0" * 5000 + b"N"
        ),
        "exceeds the limit on operations",
    ),
    "a storage loaded often": (nested(), "limit on instructions"),
    "a module used often": (shared_module(), "entries when written out"),
    "long integer": (raw(b"\x8b\xff\xff\xff\x7f"), "an integer of 2147483647 bytes"),
    "long digits": (raw(b"L" + b"9" * 3000 + b"L\n"), "an integer of 3000 digits"),
    "long text": (raw(b"X\xff\xff\xff\xff"), "damaged or cut off"),
    "long frame": (raw(b"\x95" + b"\xff" * 8), "damaged or cut off"),
    "long bytes": (raw(b"\x8e" + b"\xff" * 7 + b"\x7f"), "damaged or cut off"),
    "negative length": (raw(b"T\xff\xff\xff\xff"), "a length of 0 or more, got -1"),
    "nothing on the stack": (raw(b"R"), "damaged or cut off"),
    "no mark": (raw(b"t"), "damaged or cut off"),
    "nothing in the memo": (raw(b"h\7"), "damaged or cut off"),
    "unhashable": (raw(b"}]Ns"), "as a key"),
    "odd pairs": (raw(b"}(NNNu"), "a dict and pairs"),
    "protocol 9": (raw(b"\x80\x09N"), "of protocol 9"),
    "no instruction": (raw(b"\xff"), "which is no instruction"),
}


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.sampled(3)
def test_bombs_end_soon(bomb: str, directory: Path) -> None:
    root, message = BOMBS[bomb]
    refused = pytest.raises((UnsupportedModel, UnreadableFile), match=message)
    with within(2), refused:
        opened(directory, zip_file(root))
