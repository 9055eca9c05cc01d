"""Plans on the CPU: memory, calls of oneDNN and NumPy on it, and their bounds."""
