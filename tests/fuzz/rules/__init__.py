"""Where onnxruntime is no judge of a node, with the reason."""
