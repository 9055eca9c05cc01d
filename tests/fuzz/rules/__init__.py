"""Where onnxruntime is no reference for a node, with the reason."""
