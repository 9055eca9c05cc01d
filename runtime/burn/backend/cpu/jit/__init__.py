"""Kernels that are generated: NumPy's calls that follow each other, as one loop.

``calls`` reads what a plan notes, ``groups`` finds what can be one loop and which of
its values nobody else needs, ``loops`` the order of its elements. ``source`` writes it
for LLVM in the terms of ``functions``, ``machine`` makes code of it.
"""
