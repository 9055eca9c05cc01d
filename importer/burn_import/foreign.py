"""Files of which no module can be made, and what can be done with them instead."""

EXPORT = "Export the model to ONNX with torch.onnx.export and import that."
REMEDY = f"{EXPORT} The weights alone become a record with -o NAME.safetensors."
