"""Generated kernels: consecutive NumPy calls, fused into one loop.

``calls`` parses the calls of a plan, ``groups`` finds those that can be one loop and
the values that are dead after it, ``loops`` orders the loops. ``source`` emits LLVM IR
with the functions in ``functions``, ``machine`` compiles it, and ``disk_cache`` keeps
the object code on disk.

``native`` is the base of functions for single calls that are no such loops: ``checks``,
``casts``, ``indexed``, ``sampled``, ``products``, ``searches``, ``distinct`` and
``suppression`` with ``candidates``. ``selection`` estimates savings, ``joining``
replaces the calls, and ``batches`` makes consecutive ones, with those of oneDNN, one
call from Python. ``images`` has kernels of channels-last images: convolutions where
oneDNN is not there, and batch norms. ``pool`` has the threads where oneDNN's are not.
"""
