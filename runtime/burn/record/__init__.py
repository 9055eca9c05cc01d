"""Records: weight files.

============================  ================================================
``open_record(path)``         a safetensors file as a read-only mapping
``open_stored(path)``         the same, also where it was written in shards
``read_record(path)``         a record in any of the ``FORMATS``, likewise
``write_record(path, ...)``   write a record, streamed and atomically
``record_bytes(...)``         the same in memory, for ``record_of_bytes``
``record_sha256(...)``        the digest of the same, without writing it
``atomic_write(path, data)``  write any file atomically
``describe_foreign(head)``    the kind of a file, from its first bytes
============================  ================================================
"""

from burn.record.atomic import atomic_write
from burn.record.errors import RecordError
from burn.record.files import HEAD_SIZE, Foreign, describe_foreign
from burn.record.formats import FORMATS, format_named
from burn.record.precision import Precision
from burn.record.reader import Record, open_record, read_record, record_of_bytes
from burn.record.sharding import parse_size
from burn.record.shards import ShardedRecord, file_sha256, open_stored, record_files
from burn.record.tensor_chunks import Source, TensorSource
from burn.record.writer import record_bytes, record_sha256, shard_names, write_record

__all__ = [
    "FORMATS",
    "HEAD_SIZE",
    "Foreign",
    "Precision",
    "Record",
    "RecordError",
    "ShardedRecord",
    "Source",
    "TensorSource",
    "atomic_write",
    "describe_foreign",
    "file_sha256",
    "format_named",
    "open_record",
    "open_stored",
    "parse_size",
    "read_record",
    "record_bytes",
    "record_files",
    "record_of_bytes",
    "record_sha256",
    "shard_names",
    "write_record",
]
