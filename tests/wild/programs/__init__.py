"""Random programs in plain PyTorch, written as source of modules."""
