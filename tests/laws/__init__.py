"""How examples of operators are run: by us, by onnxruntime, by printed source."""
