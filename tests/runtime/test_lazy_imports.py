"""What ``import burn`` leaves for later, by the modules that are there after it.

No test here measures time: ``python -X importtime -c 'import burn'`` does.
"""

import ast
import importlib
import json
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import burn
from burn import Cpu, nn, ops
from burn.lazy import LazyModule, lazy_names
from burn.primitive import _PRIMITIVES
from tests.test_house import PACKAGES, ROOT, parse

#: The files of the runtime that define tensors and devices.
CORE = {
    "burn",
    *(f"burn.{name}" for name in ("attribute_hints", "box", "defaults", "dtypes")),
    *("burn.lazy", "burn.methods", "burn.numpy_interface", "burn.tensor"),
    "burn.tensor_hints",
    "burn.backend",
    *("burn.backend.cpu", "burn.backend.cuda"),
    *(f"burn.backend.{name}" for name in ("arrays", "autodiff", "balanced")),
    *("burn.backend.base", "burn.backend.tape"),
    *("burn.backend.cpu.device", "burn.backend.cuda.device"),
}
#: Parts of the standard library and of NumPy that take longer than all of ``CORE``.
SLOW = {"importlib.metadata", "numpy.random", "zipfile", "json", "tempfile", "email"}
#: What a generated module needs only when it is loaded, called or compiled.
LATER = (
    *("burn.record", "burn.store", "burn.plan.compiled", "burn.plan.passes"),
    *("burn.backend.cpu.bind", "burn.backend.cpu.jit", "burn.backend.cpu.onednn"),
    *("burn.optim", "burn.train", "burn.data", "burn.loss", "numpy.random"),
)


def modules_after(code: str) -> set[str]:
    """Return the modules that a new interpreter has imported after ``code``."""
    script = f"{code}\nimport json, sys\nprint(json.dumps(sorted(set(sys.modules))))"
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, cwd=ROOT
    )
    return set(json.loads(done.stdout.splitlines()[-1])) - {"json"}


def run(code: str) -> str:
    """Return what ``code`` prints in a new interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, cwd=ROOT
    )
    return done.stdout.decode().strip()


def packages_with_lazy_names() -> list[Path]:
    """Return the files of packages that list names to import later."""
    files = PACKAGES["burn"].rglob("__init__.py")
    return sorted(path for path in files if "lazy_names(" in path.read_text("utf-8"))


def typing_imports(path: Path) -> dict[str, str]:
    """Return the module of each name that is imported for type checkers."""
    return {
        alias.asname or alias.name: node.module or ""
        for branch in parse(path).body
        if isinstance(branch, ast.If) and ast.unparse(branch.test) == "TYPE_CHECKING"
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def table(path: Path) -> dict[str, str]:
    """Return the module of each name that is imported when it is first used."""
    package = ".".join(path.relative_to(ROOT / "runtime").parent.parts)
    tree = ast.parse(path.read_text("utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    (call,) = (node for node in calls if ast.unparse(node.func) == "lazy_names")
    variables = vars(importlib.import_module(package))
    names = eval(ast.unparse(call.args[1]), variables)  # literals and constants
    return {name: module for module, group in names.items() for name in group}


def test_import_burn_loads_no_array_library() -> None:
    code = "import burn, burn.version; dir(burn); hasattr(burn, '__wrapped__')"
    modules = modules_after(code) - modules_after("")
    assert {name for name in modules if name.startswith("burn")} == {
        *("burn", "burn.lazy", "burn.version")
    }
    assert not modules & {"numpy", "ml_dtypes", *SLOW}


def test_the_first_tensor_loads_tensors_and_devices_alone() -> None:
    arrays = modules_after("import numpy, ml_dtypes")
    modules = modules_after("import burn; burn.tensor([1.0])") - arrays
    assert {name for name in modules if name.startswith("burn")} == CORE
    assert not {name for name in modules if name.partition(".")[0] in SLOW} | (
        modules & SLOW
    )


@pytest.mark.parametrize(
    "code",
    [
        "from burn.tensor import tensor; x = tensor(1)",
        "from burn.ops import ones; x = ones((2,))",
        "from burn.nn.linear import Linear; x = Linear(1, 1).weight.value",
        "import burn; x = burn.tensor(1)",
    ],
)
def test_each_way_to_a_tensor_finds_the_default_device(code: str) -> None:
    assert run(f"{code}; print((x + 1).backend)") == "Cpu()"


def test_the_function_tensor_stays_beside_its_module() -> None:
    code = "import burn; before = burn.tensor; import burn.tensor; import burn.nn\n"
    assert run(f"{code}print(burn.tensor is before, burn.tensor(2).item())") == "True 2"


@pytest.mark.parametrize("package", [burn, nn], ids=["burn", "burn.nn"])
def test_star_imports_have_the_names_of_lazy_modules(package: ModuleType) -> None:
    path = Path(str(package.__file__))
    code = f"from {package.__name__} import *; print(*sorted(globals()))"
    names = {name for name in run(code).split() if not name.startswith("__")}
    reexports = {
        alias.asname
        for node in ast.walk(parse(path))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    assert names == set(package.__all__) >= table(path).keys() | reexports


@pytest.mark.thorough
def test_each_package_can_be_imported_first() -> None:
    names = sorted(
        ".".join(path.parent.relative_to(ROOT / "runtime").parts)
        for path in PACKAGES["burn"].rglob("__init__.py")
    )
    code = f"""
import importlib, os, numpy, ml_dtypes

def can_import(name):
    child = os.fork()
    if not child:
        importlib.import_module(name)
        os._exit(0)
    return not os.waitpid(child, 0)[1]

print([name for name in {names} if not can_import(name)])
"""
    assert run(code) == "[]"


def test_a_generated_module_loads_what_it_names() -> None:
    code = "import sys; sys.path.insert(0, 'tests/golden/loops'); import model"
    modules = modules_after(code)
    assert {"burn.nn.module", "burn.ops"} <= modules
    assert {name for name in modules if name.startswith("burn.ops.")} == {
        "burn.ops.names"
    }
    layers = {"burn.nn.linear", "burn.nn.rnn", "burn.nn.transformer", "burn.nn.trees"}
    assert layers & modules_after(f"{code}; model.Net()") == {"burn.nn.linear"}
    assert not {name for name in modules if name.startswith(LATER)}


def test_loading_draws_nothing_and_opens_no_zip_file() -> None:
    code = (
        "import numpy as np\n"
        "from burn import nn\n"
        "state = {'weight': np.ones((2, 2), 'f4'), 'bias': np.ones(2, 'f4')}\n"
        "nn.Linear(2, 2).load_state_dict(state)"
    )
    assert not {"numpy.random", "zipfile"} & modules_after(code)


def test_loading_draws_no_numbers_and_computes_no_digest() -> None:
    code = (
        "import sys; sys.path.insert(0, 'tests/golden/loops'); import model\n"
        "from burn import nn\n"
        "nn.Embedding(3, 2); nn.Linear(2, 2)"
    )
    assert not {"numpy.random", "hashlib"} & modules_after(code)


def test_functions_keep_their_names_beside_modules() -> None:
    code = "from burn import nn; nn.Dropout, nn.Linear; import burn.nn.dropout\n"
    code += "print(*(type(f).__name__ for f in (nn.dropout, nn.summary, nn.autocast)))"
    assert run(code) == "function function function"


def test_a_call_loads_the_operation_that_it_names() -> None:
    code = "import burn; burn.ops.erfinv(burn.tensor(0.5))"
    assert {"burn.ops.special"} == {
        *("burn.ops.special", "burn.ops.trees", "burn.ops.images", "burn.ops.fold")
    } & modules_after(code)


def test_layers_load_their_operations_before_the_first_call() -> None:
    code = "from burn import nn; nn.Conv2d, nn.GRU"
    assert {"burn.ops.conv", "burn.ops.rnn", "burn.ops.shape"} <= modules_after(code)


def test_all_primitives_are_there_when_they_are_asked_for() -> None:
    names = run("from burn.primitive import primitives; print(len(primitives()))")
    values = (getattr(ops, name) for name in dir(ops))
    assert int(names) >= len([value for value in values if hasattr(value, "vjp")])


@pytest.mark.parametrize(
    "look_up",
    [
        "matmul.kernel_for(Cpu())",
        "(Cpu().call(matmul, (1, 1), {}), matmul.device_kernels[Cpu])[1]",
    ],
)
def test_kernels_of_the_device_are_there_for_the_first_call(look_up: str) -> None:
    code = (
        "import numpy; from burn import Cpu; from burn.ops.matmul import matmul\n"
        f"print({look_up.replace('1, 1', 'numpy.eye(2), numpy.eye(2)')}.__module__)"
    )
    assert run(code) == "burn.backend.cpu.onednn.kernels.matmul"


def test_the_table_of_kernels_is_what_their_modules_register() -> None:
    package = importlib.import_module("burn.backend.cpu.onednn.kernels")
    modules = [
        importlib.import_module(found.name)
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    importlib.import_module("burn.ops.fused")
    registered: dict[str, list[str]] = {}
    for name, primitive in sorted(_PRIMITIVES.items()):
        kernel = primitive.device_kernels.get(Cpu)
        # Other tests may have registered kernels of their own.
        if kernel is not None and kernel.__module__.startswith("burn."):
            registered.setdefault(kernel.__module__, []).append(name)
    assert {name: list(names) for name, names in package.KERNELS.items()} == registered
    assert registered.keys() <= {module.__name__ for module in modules}


def test_a_call_imports_the_kernels_of_its_operation() -> None:
    code = "import burn; x = burn.tensor([[1.0]]); x @ x"
    kernels = "burn.backend.cpu.onednn.kernels"
    modules = modules_after(code)
    assert f"{kernels}.matmul" in modules
    others = ("convolution", "norms", "pooling", "rnn", "resize", "quantization")
    assert not {f"{kernels}.{name}" for name in others} & modules


def test_a_subclass_of_the_device_sees_the_first_call_once() -> None:
    code = """
import numpy
from burn import Cpu
from burn.ops.matmul import matmul

class Counting(Cpu):
    def __new__(cls):
        return object.__new__(cls)

    calls = 0

    def call(self, primitive, args, static):
        self.calls += 1
        return super().call(primitive, args, static)

device = Counting()
device.call(matmul, (numpy.eye(2), numpy.eye(2)), {})
print(device.calls)
"""
    assert run(code) == "1"


def test_host_constants_need_no_kernels_of_the_device() -> None:
    modules = modules_after("from burn import ops; ops.zeros((2,))")
    assert "burn.backend.cpu.onednn.kernels" not in modules


def test_the_first_call_of_a_compiled_function_imports_no_pass() -> None:
    code = "import burn; f = burn.compile(burn.ops.relu); x = burn.tensor([-1.0])\n"
    first = modules_after(f"{code}f(x)")
    assert "burn.plan.recorder" in first
    later = ("burn.plan.passes", "burn.plan.replay", "burn.backend.cpu.bind.program")
    assert not {name for name in first if name.startswith(later)}
    assert {*later} <= modules_after(f"{code}f(x); f(x)")


def test_two_calls_of_a_compiled_function_import_no_kernel_compiler() -> None:
    code = (
        "import burn; from burn import ops; x = burn.tensor([[-1.0, 2.0]])\n"
        "f = burn.compile(lambda x: (ops.exp(x) + x).sum(-1) / ops.abs(x).sum(-1))\n"
    )
    before = modules_after(f"{code}f(x); f(x)")
    assert "burn.backend.cpu.bind.sequence" in before
    compiler = {name for name in before if name.startswith("burn.backend.cpu.jit.")}
    assert compiler == {
        f"burn.backend.cpu.jit.{name}" for name in ("entries", "policy")
    }
    others = ("burn.backend.cpu.blas", "burn.backend.cpu.bind.measuring")
    assert not {name for name in before if name.startswith((*others, "llvmlite.bind"))}


def test_the_first_method_of_a_tensor_imports_operations() -> None:
    code = "import burn; from burn.lazy import LazyModule\n"
    code += "print((burn.tensor([1]) + 1).item(), type(burn.methods.ops) is LazyModule)"
    assert run(code) == "2 False"


@pytest.mark.parametrize("path", packages_with_lazy_names(), ids=str)
def test_tables_agree_with_what_type_checkers_read(path: Path) -> None:
    package = importlib.import_module(
        ".".join(path.relative_to(ROOT / "runtime").parent.parts)
    )
    names = table(path)
    assert names == typing_imports(path)
    assert names.keys() <= set(dir(package))
    for name, module in names.items():
        submodule = f"{module}.{name}" in sys.modules
        expected = sys.modules.get(f"{module}.{name}")
        value = getattr(package, name)
        assert value is (
            expected if submodule else getattr(importlib.import_module(module), name)
        )


def test_packages_refuse_names_that_they_do_not_have() -> None:
    with pytest.raises(AttributeError, match="module 'burn' has no attribute 'cuda'"):
        _ = burn.cuda  # type: ignore[attr-defined]
    get_attribute, list_names = lazy_names("burn", {"burn.plan": ("compile",)})
    assert get_attribute("compile") is burn.compile
    assert {"compile", "Tensor"} <= set(list_names())


def test_a_stand_in_gives_way_to_the_module() -> None:
    owner = type(sys)("owner")
    owner.child = LazyModule("burn.ops", owner, "child")  # type: ignore[attr-defined]
    assert owner.child.relu is ops.relu
    assert owner.child is ops


def test_modules_import_no_replacements_of_names() -> None:
    """They are for error messages, but Python asks packages for submodules, too."""
    assert "burn.function_hints" not in modules_after("import burn.ops.activation")
    code = "import burn; hasattr(burn, 'square')"
    assert "burn.function_hints" in modules_after(code)
