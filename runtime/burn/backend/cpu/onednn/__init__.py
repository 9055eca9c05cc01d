"""oneDNN as the engine of the CPU backend.

:mod:`burn.backend.cpu.onednn.kernels` registers kernels for ``Cpu``. They use oneDNN
for supported and sufficiently large operands, and NumPy otherwise. The library is
loaded by the first call that uses it.
"""
