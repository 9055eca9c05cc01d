"""The ctypes binding of oneDNN: library, memory, primitives and caches."""
