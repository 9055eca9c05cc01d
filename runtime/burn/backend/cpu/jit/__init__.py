"""Generated kernels: consecutive NumPy calls, fused into one loop.

``calls`` parses the calls of a plan, ``groups`` finds those that can be one loop and
the values that are dead after it, ``loops`` orders the loops. ``source`` emits LLVM IR
with the functions in ``functions``, ``machine`` compiles it, and ``disk_cache`` keeps
the object code on disk.
"""
