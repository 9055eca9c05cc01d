"""onnxruntime as the reference for graphs."""
