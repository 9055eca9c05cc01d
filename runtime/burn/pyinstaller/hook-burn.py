"""What PyInstaller adds to a program that imports ``burn``.

It is oneDNN's library, and the modules of its kernels, which no statement imports.
"""

from itertools import islice

from burn.backend.cpu.onednn.binding.search import library_files
from burn.backend.cpu.onednn.kernels import KERNELS

binaries = [(str(file), ".") for file in islice(library_files(), 1)]
hiddenimports = list(KERNELS)
