"""The files that PyInstaller adds to a program that imports ``burn``.

They are oneDNN's library, and modules that no statement imports: those of its kernels,
and the suggestions of names in error messages.
"""

from itertools import islice

from burn.backend.cpu.onednn.binding.search import library_files
from burn.backend.cpu.onednn.kernels import KERNELS

binaries = [(str(file), ".") for file in islice(library_files(), 1)]
hiddenimports = [*KERNELS, "burn.function_hints"]
