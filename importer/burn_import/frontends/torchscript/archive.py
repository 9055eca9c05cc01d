"""The entries of an archive of ``torch.jit.save``: modules, constants, code."""

import re
from dataclasses import dataclass

import burn_import.frontends.checkpoints.torch_globals  # noqa: F401  its functions may be called
from burn.record.errors import shown
from burn_import.frontends.checkpoints.legacy import read_archive, typed_storage
from burn_import.frontends.checkpoints.limits import Limits
from burn_import.frontends.checkpoints.pickle_globals import Context
from burn_import.frontends.checkpoints.pickle_values import Instance, Value, named
from burn_import.frontends.checkpoints.tensors import Block, Storage
from burn_import.frontends.checkpoints.unpickler import Machine
from burn_import.frontends.checkpoints.zip_archive import Zip
from burn_ir import InvalidModel, UnreadableFile, UnsupportedModel

#: Largest number of tokens of code: about a hundred transformer layers.
MOST_WORDS = 200_000
#: Steps and nodes allowed for any program, summed over all interpretations of it.
_STEPS, _NODES = 100_000, 4_000
#: Steps and nodes allowed per token in each interpretation; a traced node has about ten
#: tokens.
_STEPS_PER_WORD, _WORDS_PER_NODE = 4, 4
#: Steps and nodes allowed per module, since scripted modules share their code.
_STEPS_PER_MODULE, _NODES_PER_MODULE = 400, 60


class TooMuch(UnsupportedModel):  # noqa: N818
    """Raised when a program exceeds the limits on steps or nodes."""


@dataclass
class Pool:
    """Steps and nodes for programs that need more than their code size suggests."""

    steps: int = _STEPS
    nodes: int = _NODES


class Budget:
    """Remaining steps and nodes, given the size of the code and the modules.

    When it is used up, it takes from ``pool``, which is shared by all interpretations
    of the program with different input types.
    """

    def __init__(self, words: int, modules: int, pool: Pool) -> None:
        self.steps = _STEPS_PER_WORD * words + _STEPS_PER_MODULE * modules
        self.nodes = words // _WORDS_PER_NODE + _NODES_PER_MODULE * modules
        self.pool = pool

    def step(self, count: int = 1) -> None:
        """Count statements, calls and list items.

        Raises:
            TooMuch: the limit is exceeded.
        """
        self.steps -= count
        if self.steps < 0:
            self.pool.steps += self.steps
            self.steps = 0
            if self.pool.steps < 0:
                raise TooMuch("the program exceeds the limit on interpreted steps")

    def node(self, count: int) -> None:
        """Count nodes added to the graph.

        Raises:
            TooMuch: the limit is exceeded.
        """
        self.nodes -= count
        if self.nodes < 0:
            self.pool.nodes += self.nodes
            self.nodes = 0
            if self.pool.nodes < 0:
                raise TooMuch(
                    "the program exceeds the limit on nodes for its code size"
                )


_WORD = re.compile(r"\w+|[^\w\s]")
#: Largest size in bytes of all code files.
_MOST_CODE = 8 * 2**20


class Archive:
    """A TorchScript archive.

    ``root`` is the root module, ``constants`` are those that the code calls
    ``CONSTANTS.c0``, ``inputs`` are the example arguments of ``torch.jit.trace``, None
    if the archive has none.

    Raises:
        UnreadableFile: the file is damaged, or no such archive.
        UnsupportedModel: its pickles call a function that is refused.
        InvalidModel: a tensor contradicts its storage.
    """

    def __init__(self, data: memoryview, limits: Limits) -> None:
        context = Context(limits)
        content = read_archive(data, context)
        if content.format != "torchscript":
            raise UnreadableFile("expected a TorchScript archive, got another one")
        if not isinstance(content.root, Instance):
            raise InvalidModel(f"expected a module, got {named(content.root)}")
        self.root = content.root
        constants = content.constants
        self.constants = constants if isinstance(constants, tuple | list) else ()
        self.zip = Zip(data, limits)
        self.folder = self.zip.folder()
        #: The number of tokens of code that were read.
        self.words = 0
        self.files = self._code()
        self.inputs = self._inputs(context)

    def _inputs(self, context: Context) -> Value:
        name = f"{self.folder}/traced_inputs.pkl"
        if name not in self.zip.entries:
            return None
        machine = Machine(self.zip.read(name), context, _storage_of_example)
        root = machine.run()
        examples = root.get("forward") if isinstance(root, dict) else None
        return examples if isinstance(examples, list | tuple) else None

    def _code(self) -> dict[str, str]:
        """Return the files below ``code/``, counting their tokens."""
        start = f"{self.folder}/code/"
        paths = [
            entry
            for name, entry in self.zip.entries.items()
            if name.startswith(start) and name.endswith(".py")
        ]
        if sum(entry.size for entry in paths) > _MOST_CODE:
            raise UnsupportedModel(f"more than {_MOST_CODE} bytes of code")
        files = {}
        for entry in paths:
            try:
                text = bytes(self.zip.read(entry.name)).decode("utf-8")
            except UnicodeDecodeError as error:
                raise UnreadableFile(f"{shown(entry.name)}: expected text") from error
            self.words += sum(1 for _ in _WORD.finditer(text))
            files[entry.name.removeprefix(start)] = text
        if self.words > MOST_WORDS:
            raise UnsupportedModel(f"more than {MOST_WORDS} words of code")
        return files

    def constant(self, name: str) -> Value:
        """Return the constant that the code calls ``CONSTANTS.name``.

        Raises:
            InvalidModel: the archive has no such constant.
        """
        number = name.removeprefix("c")
        if not number.isdecimal() or int(number[:9]) >= len(self.constants):
            raise InvalidModel(f"the archive has no constant {shown(name)}")
        return self.constants[int(number[:9])]


def _storage_of_example(pid: Value) -> Storage:
    """Return the storage of an example input, whose bytes are not saved."""
    element, key, count = typed_storage(pid)
    return Storage(Block(f"input storage {shown(key)}"), element, count)
