"""Plans as CUDA graphs: fused programs, captured nodes, and state tensors."""
