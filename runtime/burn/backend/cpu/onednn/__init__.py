"""oneDNN as the engine of the CPU backend.

:mod:`burn.backend.cpu.onednn.kernels` registers kernels for ``Cpu`` on primitives. They
compute with oneDNN what it can and what is large enough, and leave everything else to
NumPy. The library is loaded by the first call that would use it.
"""
