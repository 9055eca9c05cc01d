"""Known defects of third-party files: those that are wrong, those that fail."""

from burn_ir import InvalidModel, ModelError

FIXTURES = "burn-onnx/crates/onnx-ir/tests/fixtures/"
BURN = "burn-onnx/crates/onnx-tests/tests/"

#: Files with recorded results that cannot be imported as they should, and why. A file
#: that can be is an error here: its line goes.
FAILING: dict[str, str] = {}

#: Files for which onnxruntime gives the lowest number where the specification has
#: minus infinity: the scores of Attention that its mask takes out.
LOWEST = (BURN + "attention/attention_qk_output_2",)

#: Files of which nothing is recorded, here for the size of their inputs.
UNRECORDED = (BURN + "where_op/where_shape_all_shapes",)

#: Files that the specification does not allow: how they are refused.
REFUSED: dict[str, tuple[type[ModelError], str]] = {
    FIXTURES
    + "opset_compliance/opset_01": (
        InvalidModel,
        r"\(Cast, opset 1\): expected the name of a data type, got '6'\n"
        r".*\(Tile, opset 1\): expected input 2, got none",
    ),
    FIXTURES
    + "opset_compliance/opset_10": (
        InvalidModel,
        r"'mod_node' \(Mod, opset 10\): expected fmod=1 for floating operands",
    ),
    FIXTURES
    + "mixed_rank_broadcasting": (
        InvalidModel,
        r"'add_4d_2d' \(Add, opset 16\): .*float32\[1, 3, 4, 4\] and float32\[1, 3\]",
    ),
    FIXTURES
    + "opset_compliance/opset_13": (
        InvalidModel,
        r"'mod_node' \(Mod, opset 13\): expected fmod=1 for floating operands",
    ),
    FIXTURES
    + "opset_compliance/opset_18": (
        InvalidModel,
        r"'groupnormalization_node' \(GroupNormalization, opset 18\): "
        r"expected a vector of 2 for .*, got float32\[4\]",
    ),
    FIXTURES
    + "node_multiple_outputs_partial_use": (
        InvalidModel,
        r"'topk' \(TopK, opset 16\): expected k in a vector of one, got int64\[\]",
    ),
    BURN
    + "concat/concat_scalar_direct": (
        InvalidModel,
        r"'/Concat' \(Concat, opset 16\): expected an axis",
    ),
    BURN
    + "mod/mod_remainder": (
        InvalidModel,
        r"'z' \(Mod, opset 16\): expected fmod=1 for floating operands",
    ),
    BURN
    + "squeeze/squeeze_shape_noop": (
        InvalidModel,
        r"'squeeze_output' \(Squeeze, opset 16\): expected extent 1 on axis 0",
    ),
    "quant/bert_fp16_keep_io": (
        InvalidModel,
        r"\(Gemm, opset 17\): expected operands of one dtype, got float32 and float16",
    ),
}
