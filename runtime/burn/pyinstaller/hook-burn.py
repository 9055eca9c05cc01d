"""Files that PyInstaller adds to a program that imports ``burn``: oneDNN's library."""

from itertools import islice

from burn.backend.cpu.onednn.binding.search import library_files

binaries = [(str(file), ".") for file in islice(library_files(), 1)]
