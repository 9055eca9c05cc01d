"""The names of :mod:`burn.ops`, by the modules that define them."""

NAMES = {
    f"{__package__}.{module}": tuple(names.split())
    for module, names in {
        "activation": (
            "celu clip elu gelu gelu_grad hard_sigmoid hard_swish leaky_relu mish "
            "prelu quick_gelu relu relu_grad selu shrink sigmoid silu softplus "
            "softsign tanh thresholded_relu"
        ),
        "adaptive_pool": "adaptive_max_pool adaptive_max_pool_with_indices",
        "attention": (
            "attention attention_scores attention_weights masked_softmax "
            "merge_heads split_heads weighted_values"
        ),
        "bits": (
            "bitcast bitwise_and bitwise_left_shift bitwise_not bitwise_or "
            "bitwise_right_shift bitwise_xor"
        ),
        "broadcast": "expand sum_to",
        "casting": "cast",
        "conv": "conv conv_transpose conv_transpose_to conv_weight_grad",
        "creation": "arange array eye full full_like ones ones_like zeros zeros_like",
        "cumulative": "cumprod cumsum logcumsumexp prod",
        "decomposition": "cholesky eigh qr svd",
        "deform": "deform_conv",
        "elementwise": (
            "abs add ceil div erf exp expm1 floor floor_div fmod log log1p maximum "
            "minimum mul neg pow reciprocal remainder round sign sqrt sub trunc "
            "trunc_div"
        ),
        "embedding": "embedding",
        "encoders": "lookup one_hot_encode",
        "exact_integer": "integer_conv integer_matmul quantized_conv quantized_matmul",
        "experts": "mixture_of_experts",
        "fold": "fold fold_axis max_unpool unfold unfold_axis",
        "gradient": "gradient",
        "grid": "affine_grid grid_sample",
        "grouped": "grouped_matmul grouped_outer",
        "images": "decode_image",
        "indexing": (
            "compress depth_to_space gather_nd getitem nonzero one_hot one_hot_mask "
            "slice space_to_depth take"
        ),
        "layer_norm": "layer_norm layer_norm_grad rms_norm rms_norm_grad",
        "linalg": "cofactor det inverse matrix_exp pinv slogdet solve solve_triangular",
        "linear_attention": "linear_attention",
        "logic": (
            "equal greater greater_equal isinf isnan less less_equal logical_and "
            "logical_not logical_or logical_xor not_equal where"
        ),
        "loss": "cross_entropy nll_loss",
        "maps": "cast_map dict_vectorize zip_map",
        "matmul": "einsum linear matmul",
        "norm": (
            "batch_norm batch_norm_grad batch_norm_train group_norm instance_norm "
            "lrn"
        ),
        "ordering": "argmax argmin argsort hardmax sort topk",
        "packed": "dequantize_bnb4 matmul_nbits take_quantized unpack_bits unpack_bnb4",
        "padding": "center_crop_pad flip pad reverse_sequence roll stack tile trilu",
        "pool": (
            "adaptive_avg_pool adaptive_avg_spread avg_pool lp_pool max_pool "
            "max_pool_with_indices window_argmax window_gather window_scatter "
            "window_spread window_sum"
        ),
        "quantize": (
            "cast_e8m0 dequantize fake_quantize quantization_range quantize "
            "quantizes"
        ),
        "quantized_rnn": "dynamic_quantized_lstm",
        "random": (
            "bernoulli dropout dropout_by_seed dropout_with_mask multinomial normal "
            "uniform"
        ),
        "reduction": "all any axes_or_all max mean min reduce_l1 reduce_l2 std sum var",
        "resize": "resize",
        "rnn": "gru lstm rnn",
        "roi": "max_roi_pool roi_align",
        "rotary": "extend_cache rotary_embedding tensor_gather tensor_scatter",
        "sampling": "gather_dot gather_sum scatter_sum tap_argmax",
        "scatter": "gather_elements scatter_elements scatter_nd",
        "scores": "normalize probit softmax_zero",
        "selection": "non_max_suppression unique",
        "sequence": (
            "absent element fill_rows has_element sequence sequence_at "
            "sequence_erase sequence_insert sequence_joined sequence_length "
            "sequence_reversed split_to_sequence stack_rows"
        ),
        "shape": (
            "chunk concat detach flatten permute reshape shape size split squeeze "
            "transpose unsqueeze"
        ),
        "signal": (
            "blackman_window dft hamming_window hann_window mel_weight_matrix stft"
        ),
        "softmax": "log_softmax logsumexp softmax",
        "special": "erfinv gcd lgamma polygamma scaled_bessel_i",
        "svm": "pairwise_probabilities pairwise_votes squared_distance svm_kernel",
        "text": (
            "regex_full_match string_concat string_normalize string_split tfidf "
            "tokenize"
        ),
        "training": "adagrad adam momentum",
        "trees": "tree_ensemble",
        "trigonometry": "acos acosh asin asinh atan atan2 atanh cos cosh sin sinh tan",
    }.items()
}
