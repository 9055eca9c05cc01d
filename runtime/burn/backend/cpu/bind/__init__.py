"""Binding of plans on the CPU: memory, prepared oneDNN and NumPy calls, and bounds."""
