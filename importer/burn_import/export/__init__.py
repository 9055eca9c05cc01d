"""The way back: modules of ``burn`` as ONNX files."""
