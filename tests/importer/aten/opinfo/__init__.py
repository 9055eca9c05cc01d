"""PyTorch's own sample inputs of its operators, exported and imported again.

Needs PyTorch and ``expecttest``, which PyTorch's list of operators imports.
"""
