"""SHA-256 digests.

``hashlib`` loads OpenSSL, which takes longer than most packages here do. It is imported
by the first digest: loading and running most models needs none.
"""

from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from hashlib import _Hash


def sha256(data: bytes | memoryview = b"") -> "_Hash":
    """Return the SHA-256 of ``data``, which ``update`` extends."""
    import hashlib

    return hashlib.sha256(data)


def file_sha256_of(file: BinaryIO) -> str:
    """Return the SHA-256 (hex) of the rest of a binary file."""
    import hashlib

    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
