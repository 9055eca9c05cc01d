"""Records: the files that weights live in.

============================  ================================================
``open_record(path)``         a safetensors file as a read-only mapping
``write_record(path, ...)``   a safetensors file, streamed and atomic
``atomic_write(path, data)``  any file, old or new but never torn
``describe_foreign(head)``    what a file is by its first bytes
============================  ================================================
"""

from burn.record.atomic import atomic_write
from burn.record.errors import RecordError
from burn.record.files import HEAD_SIZE, Foreign, describe_foreign
from burn.record.reader import Record, open_record
from burn.record.writer import Source, TensorSource, write_record

__all__ = [
    "HEAD_SIZE",
    "Foreign",
    "Record",
    "RecordError",
    "Source",
    "TensorSource",
    "atomic_write",
    "describe_foreign",
    "open_record",
    "write_record",
]
