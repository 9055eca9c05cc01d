"""Weights of files in modules that were written by hand, and back."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import Tensor, nn, ops
from burn.record import FORMATS, RecordError, open_record, write_record
from burn.store import Store, WeightsError

Array = np.ndarray[Any, Any]
State = dict[str, Array]


class Head(nn.Module):
    """Two linear layers in a list, a normalization, and a table tied to the end."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 4), nn.Linear(4, 3)])
        self.norm = nn.BatchNorm1d(3)
        self.table = nn.Embedding(5, 3)
        self.out = nn.Linear(3, 5, bias=False)
        self.out.weight = self.table.weight

    def __call__(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = ops.relu(layer(x))
        return self.out(self.norm(x))


def state(seed: int = 0, **other: Array) -> State:
    """Return random arrays for every key of the module but the second of the tie."""
    rng = np.random.default_rng(seed)
    arrays = {
        key: rng.normal(size=box.shape).astype(np.float32)
        for key, box in Head().boxes()
        if key != "out.weight"
    }
    return arrays | other


def values(module: nn.Module) -> State:
    """Return what a module holds."""
    return {key: box.numpy().copy() for key, box in module.boxes()}


def loaded(store: Store) -> State:
    """Return what a new module holds after a load."""
    module = Head()
    store.load(module)
    return values(module)


def same(a: State, b: State) -> None:
    """Return if two states are the same, bit by bit."""
    assert a.keys() == b.keys()
    for key, array in a.items():
        assert array.dtype == b[key].dtype and array.tobytes() == b[key].tobytes(), key


WHOLE = {**state(), "out.weight": state()["table.weight"]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A record that fits."""
    write_record(tmp_path / "w.safetensors", state().items())
    return tmp_path / "w.safetensors"


@pytest.mark.parametrize("mmap", [True, False])
def test_a_record_is_loaded(path: Path, mmap: bool) -> None:
    module = Head()
    report = Store.from_file(path, mmap=mmap).load(module)
    same(values(module), WHOLE)
    assert set(report.applied) == set(WHOLE)
    assert not report.problems and not report.skipped


def test_patterns_are_applied_in_a_chain() -> None:
    theirs = {
        re.sub(r"^layers\.", "module.body.linear", key): array
        for key, array in state().items()
    }
    store = (
        Store.from_tensors(theirs)
        .with_key_remapping(r"^module\.", "")
        .with_key_remapping(r"^body\.", "")
        .with_key_remapping(r"^linear(\d+)", r"layers.\1")
    )
    same(loaded(store), WHOLE)


def test_two_keys_that_become_one_clash() -> None:
    store = Store.from_tensors(
        {**state(), "old.norm.bias": np.zeros(3, np.float32)}
    ).with_key_remapping("^old[.]", "")
    with pytest.raises(WeightsError, match="renamed from both 'norm.bias' and 'old.n"):
        store.load(Head())
    report = store.allow_partial().load(Head())
    assert report.clashes == ("norm.bias",)


@pytest.mark.parametrize(
    ("numbers", "given"), [((0, 2), True), ((1, 30), True), ((0, 1), False)]
)
def test_gaps_between_layers_are_closed(numbers: tuple[int, int], given: bool) -> None:
    names = {f"layers.{rank}": f"layers.{n}" for rank, n in enumerate(numbers)}
    theirs = {
        re.sub(r"^layers\.\d", lambda match: names[match[0]], key): array
        for key, array in state().items()
    }
    store = Store.from_tensors(theirs)
    same(loaded(store.map_indices_contiguous()), WHOLE)
    if given:
        with pytest.raises(WeightsError, match="unexpected layers"):
            store.load(Head())


def test_numbers_that_the_module_has_stay() -> None:
    module = nn.Sequential(nn.Linear(2, 2), ops.relu, nn.Linear(2, 2))
    arrays = values(module)
    assert [*arrays][2] == "2.weight"
    other = nn.Sequential(nn.Linear(2, 2), ops.relu, nn.Linear(2, 2))
    Store.from_tensors(arrays).map_indices_contiguous().load(other)
    same(values(other), arrays)


def test_numbers_below_numbers_are_closed_on_their_own() -> None:
    rows = [nn.ModuleList([nn.Linear(1, 1, bias=False)] * 1) for _ in range(2)]
    module = nn.ModuleList(rows)
    theirs = {f"{n}.{n + 5}.weight": np.full((1, 1), n, np.float32) for n in (3, 10)}
    Store.from_tensors(theirs).map_indices_contiguous().load(module)
    actual = {key: array.item() for key, array in values(module).items()}
    assert actual == {"0.0.weight": 3, "1.0.weight": 10}


FILTERS: dict[str, tuple[Any, set[str]]] = {
    "regex": (
        lambda store: store.with_regex(r"^norm\.", "0.bias"),
        {key for key in WHOLE if key.startswith("norm.") or key == "layers.0.bias"},
    ),
    "exact": (
        lambda store: store.with_full_path("norm.bias", "table.weight"),
        {"norm.bias", "table.weight"},
    ),
    "predicate": (
        lambda store: store.with_predicate(lambda key: key.endswith("running_var")),
        {"norm.running_var"},
    ),
    "one of several": (
        lambda store: store.with_regex("^norm.b").with_full_path("out.weight"),
        {"norm.bias", "out.weight"},
    ),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters_choose_what_is_loaded(name: str) -> None:
    narrowed, wanted = FILTERS[name]
    module = Head()
    before = values(module)
    offered = {**WHOLE, "alien": np.ones(1)}
    report = narrowed(Store.from_tensors(offered)).load(module)
    tied = {"out.weight", "table.weight"}
    changed = wanted | (tied if wanted & tied else set())
    assert set(report.applied) == wanted
    assert set(report.skipped) == {*offered} - wanted
    now = values(module)
    same({key: now[key] for key in changed}, {key: WHOLE[key] for key in changed})
    left = WHOLE.keys() - changed
    same({key: now[key] for key in left}, {key: before[key] for key in left})


@pytest.mark.parametrize("name", FILTERS)
def test_filters_choose_what_is_saved(name: str, tmp_path: Path) -> None:
    narrowed, wanted = FILTERS[name]
    target = tmp_path / "part.safetensors"
    narrowed(Store.from_file(target)).save(Head().load_state_dict(dict(WHOLE)))
    same(dict(open_record(target)), {key: WHOLE[key] for key in wanted})


def broken() -> State:
    """Return a state with one mistake of every kind."""
    wrong = state()
    del wrong["norm.bias"], wrong["layers.1.weight"]
    wrong["layers.0.weight"] = np.zeros((3, 4), np.float32)
    wrong["norm.weight"] = np.zeros(3, np.float64)
    wrong["layers.0.bias"] = np.zeros(4, np.int64)
    wrong["more"] = np.zeros(2, np.uint8)
    wrong["out.weight"] = wrong["table.weight"] + 1
    wrong["norm.num_batches_tracked"] = np.zeros((), np.int64)
    return wrong


def test_all_problems_are_listed_and_nothing_is_set() -> None:
    module = Head()
    before = values(module)
    with pytest.raises(WeightsError) as caught:
        Store.from_tensors(broken()).load(module)
    assert str(caught.value).splitlines() == [
        "tensors: the weights do not fit:",
        "  missing layers.1.weight: float32[3, 4]",
        "  missing norm.bias: float32[3]",
        "  unexpected more",
        "  layers.0.weight: expected float32[4, 3], got float32[3, 4]",
        "  layers.0.bias: expected float32[4], got int64[4]",
        "  norm.weight: expected float32[3], got float64[3]",
        "  out.weight: expected the value of table.weight, which it is",
    ]
    same(values(module), before)
    report = caught.value.report
    assert report is not None and report.skipped == ("norm.num_batches_tracked",)


def test_what_fits_is_loaded_if_a_part_is_enough() -> None:
    module = Head()
    before = values(module)
    report = Store.from_tensors(broken()).allow_partial().load(module)
    assert report.missing == ("layers.1.weight", "norm.bias")
    assert report.unexpected == ("more",)
    assert report.mis_shaped == ("layers.0.weight",)
    assert report.wrong_dtype == ("layers.0.bias", "norm.weight")
    assert report.clashes == ("out.weight",)
    applied = set(report.applied)
    assert applied == {
        *("layers.1.bias", "norm.running_mean", "norm.running_var", "table.weight")
    }
    now = values(module)
    same({key: now[key] for key in applied}, {key: WHOLE[key] for key in applied})
    left = WHOLE.keys() - applied - {"out.weight"}
    same({key: now[key] for key in left}, {key: before[key] for key in left})


def test_a_record_that_fits_in_part_is_loaded_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "head.safetensors"
    arrays = state(3) | {"layers.0.bias": np.zeros(7, np.float32)}
    write_record(path, arrays.items())
    with pytest.raises(WeightsError, match=r"layers\.0\.bias"):
        Head().load_weights(path)
    assert not capsys.readouterr().out
    module = Head().load_weights(path, strict=False)
    assert "mis-shaped   layers.0.bias" in capsys.readouterr().out
    kept = values(module)
    assert np.array_equal(kept["norm.bias"], arrays["norm.bias"])
    assert kept["layers.0.bias"].shape == (4,)


def test_the_table_of_a_report() -> None:
    store = Store.from_tensors(broken()).with_regex("bias$|^m|^norm.num|^layers.1.w")
    lines = str(store.allow_partial().load(Head())).splitlines()
    assert lines[0] == "applied      layers.1.bias             float32[3]"
    assert "missing      layers.1.weight           float32[3, 4]" in lines
    assert "unexpected   more                      uint8[2]" in lines
    assert lines[-2].split(maxsplit=3)[:2] == ["wrong", "dtype"]
    assert lines[-1] == "1 applied, 7 skipped, 2 missing, 1 unexpected, 1 wrong dtype"
    assert str(Store.from_tensors({}).load(nn.Module())) == "no keys"


def test_names_cannot_command_a_terminal() -> None:
    odd = {"\x1b[31mred\u202e": np.zeros(1)}
    report = Store.from_tensors(odd).allow_partial().load(nn.Module())
    assert "'\\x1b[31mred\\u202e'" in str(report) and "\x1b" not in str(report)
    with pytest.raises(WeightsError, match=r"unexpected '\\x1b"):
        Store.from_tensors(odd).load(nn.Module())


def test_dtypes_are_converted_if_asked_for() -> None:
    halves = {key: array.astype(np.float16) for key, array in state().items()}
    store = Store.from_tensors(halves)
    with pytest.raises(WeightsError, match=r"norm.bias: .* got float16\[3\]"):
        store.load(Head())
    module = Head()
    report = store.convert_dtypes().load(module)
    for key, array in halves.items():
        np.testing.assert_array_equal(values(module)[key], array.astype(np.float32))
    assert "norm.bias" in report.applied and "float32[3] from float16" in str(report)


class Boxed(nn.Module):
    """One buffer of three."""

    def __init__(self, dtype: Any) -> None:
        super().__init__()
        self.box = burn.Buffer(burn.tensor(np.arange(3).astype(dtype)))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array([1, 2, 300]), "1 of 3 values do not fit int8"),
        (np.array([1, -129, 300]), "2 of 3 values do not fit int8"),
        (np.array([0, 2**63, 1], np.uint64), "1 of 3 values do not fit int8"),
        (np.zeros(3, np.float32), r"expected int8\[3\], got float32"),
        (np.zeros(3, np.bool_), r"expected int8\[3\], got bool"),
    ],
)
def test_values_that_do_not_fit_are_refused(array: Array, message: str) -> None:
    module = Boxed(np.int8)
    store = Store.from_tensors({"box": array}).convert_dtypes()
    with pytest.raises(WeightsError, match=message):
        store.load(module)
    assert module.box.numpy().tolist() == [0, 1, 2]


def test_a_float_that_would_be_infinite_is_refused() -> None:
    module = Boxed(np.float16)
    array = np.array([1e5, np.inf, np.nan], np.float32)
    with pytest.raises(WeightsError, match="1 of 3 values do not fit float16"):
        Store.from_tensors({"box": array}).convert_dtypes().load(module)
    fits = np.array([65519, np.inf, np.nan], np.float32)
    Store.from_tensors({"box": fits}).convert_dtypes().load(module)
    assert module.box.numpy()[0] == 65504


def test_a_damaged_file_leaves_the_module_as_it_was(tmp_path: Path) -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = burn.Parameter(burn.tensor(np.zeros(2, np.float32)))
            self.mask = burn.Buffer(burn.tensor(np.zeros(3, np.bool_)))

    path = tmp_path / "w.safetensors"
    arrays = {"a": np.ones(2, np.float32), "mask": np.ones(3, np.bool_)}
    write_record(path, arrays.items())
    data = path.read_bytes()
    path.write_bytes(data[:-1] + b"\7")
    module = Masked()
    with pytest.raises(RecordError, match="BOOL expects bytes 0 and 1, got 7"):
        Store.from_file(path).allow_partial().load(module)
    assert module.a.numpy().tolist() == [0, 0]


def test_a_state_of_another_module_is_copied_in_part() -> None:
    teacher = Head().load_state_dict(dict(WHOLE))
    pupil = nn.Sequential(nn.Linear(3, 4))
    store = Store.from_tensors(teacher.state_dict()).with_regex(r"^0\.")
    store.with_key_remapping(r"^layers\.", "").load(pupil)
    same(values(pupil), {key[7:]: WHOLE[key] for key in WHOLE if key[:8] == "layers.0"})


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_of_records(kind: str, tmp_path: Path) -> None:
    store = Store.from_file(tmp_path / f"w.{kind}")
    module = Head().load_state_dict(dict(WHOLE))
    store.save(module)
    same(loaded(store), WHOLE)
    same(loaded(Store.from_bytes(store.to_bytes(module, kind), kind)), WHOLE)
    halves = store.with_precision("half")
    halves.save(module)
    rounded = {key: WHOLE[key].astype(np.float16).astype(np.float32) for key in WHOLE}
    same(loaded(store), rounded)


def test_burns_layout_and_back(tmp_path: Path) -> None:
    target = tmp_path / "burn.safetensors"
    store = Store.from_file(target).in_burn_layout().with_metadata("by", "me")
    store.save(Head().load_state_dict(dict(WHOLE)))
    record = open_record(target)
    assert record.metadata == {"by": "me"}
    np.testing.assert_array_equal(record["norm.gamma"], WHOLE["norm.weight"])
    np.testing.assert_array_equal(record["layers.0.weight"], WHOLE["layers.0.weight"].T)
    assert "norm.beta" in record and "norm.weight" not in record
    same(loaded(store), WHOLE)


def test_a_file_with_burns_key_and_ours() -> None:
    both = {"norm.gamma": np.ones(3, np.float32), **state()}
    with pytest.raises(WeightsError, match="unexpected norm.gamma"):
        Store.from_tensors(both).in_burn_layout().load(Head())


def test_keys_are_renamed_on_saving_too(tmp_path: Path) -> None:
    target = tmp_path / "w.safetensors"
    store = Store.from_file(target).with_key_remapping("^", "model.")
    store.save(Head())
    assert all(key.startswith("model.") for key in open_record(target))
    merged = Store.from_file(target).with_key_remapping("weight|bias", "w")
    with pytest.raises(RecordError, match="renamed from both 'layers.0.weight' and"):
        merged.save(Head())
    with pytest.raises(RecordError, match="expected a file to write to"):
        Store.from_tensors({}).save(Head())
