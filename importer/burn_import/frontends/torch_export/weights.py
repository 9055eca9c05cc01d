"""The weights and constants of an archive, each an entry of raw bytes."""

import json
from typing import Any

from burn.record.errors import shown
from burn_import.frontends.checkpoints.element_types import ELEMENTS
from burn_import.frontends.checkpoints.tensors import Block, Storage, Tensor, tensor_in
from burn_import.frontends.checkpoints.zip_archive import Zip
from burn_import.frontends.torch_export.pytrees import WEIGHTS, check
from burn_import.frontends.torch_export.schema import scalar_name
from burn_ir import InvalidModel, ModelError, UnreadableFile, UnsupportedModel

KINDS = ("weights", "constants")


def json_in(archive: Zip, name: str) -> Any:
    """Return the JSON value in an entry.

    Raises:
        UnreadableFile: the entry is not JSON.
    """
    if name not in archive.entries:
        raise UnreadableFile(f"the archive has no {shown(name)}")
    try:
        return json.loads(bytes(archive.read(name)))
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(f"{shown(name)}: expected JSON, got {error}") from error


class StoredTensors:
    """The tensors of an archive, by name in the program."""

    def __init__(self, archive: Zip, folder: str) -> None:
        self.archive = archive
        self.blocks: dict[str, Block] = {}
        self.entries: dict[str, tuple[str, Any]] = {}
        for kind in KINDS:
            config = f"{folder}/data/{kind}/model_{kind}_config.json"
            if config in archive.entries:
                content = json_in(archive, config)
                check(content, WEIGHTS, config)
                for name, entry in content["config"].items():
                    self.entries[name] = (f"{folder}/data/{kind}", entry)

    def tensor(self, name: str) -> Tensor:
        """Return the tensor called ``name``.

        Raises:
            InvalidModel: there is none, or it contradicts its bytes.
            UnsupportedModel: it is pickled, or of an unsupported dtype.
        """
        try:
            return self._tensor(name)
        except ModelError as error:
            raise type(error)(f"tensor {shown(name)}: {error}") from error

    def _tensor(self, name: str) -> Tensor:
        if name not in self.entries:
            raise InvalidModel("the archive has no data for it")
        folder, entry = self.entries[name]
        if entry.get("use_pickle"):
            raise UnsupportedModel("it is pickled, and pickles are not read")
        meta = entry["tensor_meta"]
        element = ELEMENTS[scalar_name(meta["dtype"])]
        path = f"{folder}/{entry['path_name']}"
        if path not in self.archive.entries:
            raise InvalidModel(f"the archive has no {shown(path)}")
        if path not in self.blocks:
            raw = self.archive.stored(path)
            self.blocks[path] = Block(f"tensor {shown(name)}", raw)
        size = self.archive.entries[path].size
        storage = Storage(self.blocks[path], element, size // element.size)
        shape, strides = (
            tuple(_number(size) for size in meta[key]) for key in ("sizes", "strides")
        )
        offset = _number(meta["storage_offset"])
        return tensor_in(self.archive.limits, storage, offset, shape, strides)


def _number(size: Any) -> int:
    if size.get("as_int") is None:
        raise InvalidModel(
            f"expected a stored tensor of fixed extents, got {shown(size)}"
        )
    return int(size["as_int"])
