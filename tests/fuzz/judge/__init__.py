"""onnxruntime as the judge of graphs."""
