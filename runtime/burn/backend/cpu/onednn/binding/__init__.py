"""oneDNN through ctypes: its library, memory, primitives and what is kept of them."""
