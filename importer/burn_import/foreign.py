"""Files of which no module can be made, and what can be done with them instead."""

EXPORT = "Export the model to ONNX with torch.onnx.export and import that."
REMEDY = f"{EXPORT} The weights alone become a record with -o NAME.safetensors."
SHARDED = (
    "expected a file, got a checkpoint in shards (torch.distributed.checkpoint). Make "
    "it one file with python -m torch.distributed.checkpoint.format_utils dcp_to_torch "
    "FOLDER NAME.pt"
)
