"""Export of ``burn`` modules to ONNX files."""
