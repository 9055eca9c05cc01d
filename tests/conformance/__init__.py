"""The backend test suite of ONNX, on the source that is generated for its models."""
