"""Operations on tensors, by family.

Each name is a primitive (kernels with a gradient) or a function of primitives. Its
module is imported when it is first used.
"""

from typing import TYPE_CHECKING

from burn.lazy import function_hint, keep_functions, lazy_names
from burn.ops.names import NAMES

if TYPE_CHECKING:
    from burn.ops.activation import (
        celu as celu,
        clip as clip,
        elu as elu,
        gelu as gelu,
        gelu_grad as gelu_grad,
        hard_sigmoid as hard_sigmoid,
        hard_swish as hard_swish,
        leaky_relu as leaky_relu,
        mish as mish,
        prelu as prelu,
        quick_gelu as quick_gelu,
        relu as relu,
        relu_grad as relu_grad,
        selu as selu,
        shrink as shrink,
        sigmoid as sigmoid,
        silu as silu,
        softplus as softplus,
        softsign as softsign,
        tanh as tanh,
        thresholded_relu as thresholded_relu,
    )
    from burn.ops.adaptive_pool import (
        adaptive_max_pool as adaptive_max_pool,
        adaptive_max_pool_with_indices as adaptive_max_pool_with_indices,
    )
    from burn.ops.attention import (
        attention as attention,
        attention_scores as attention_scores,
        attention_weights as attention_weights,
        masked_softmax as masked_softmax,
        merge_heads as merge_heads,
        split_heads as split_heads,
        weighted_values as weighted_values,
    )
    from burn.ops.bits import (
        bitcast as bitcast,
        bitwise_and as bitwise_and,
        bitwise_left_shift as bitwise_left_shift,
        bitwise_not as bitwise_not,
        bitwise_or as bitwise_or,
        bitwise_right_shift as bitwise_right_shift,
        bitwise_xor as bitwise_xor,
    )
    from burn.ops.broadcast import expand as expand, sum_to as sum_to
    from burn.ops.casting import cast as cast
    from burn.ops.conv import (
        conv as conv,
        conv_transpose as conv_transpose,
        conv_transpose_to as conv_transpose_to,
        conv_weight_grad as conv_weight_grad,
    )
    from burn.ops.creation import (
        arange as arange,
        array as array,
        eye as eye,
        full as full,
        full_like as full_like,
        ones as ones,
        ones_like as ones_like,
        zeros as zeros,
        zeros_like as zeros_like,
    )
    from burn.ops.cumulative import (
        cumprod as cumprod,
        cumsum as cumsum,
        logcumsumexp as logcumsumexp,
        prod as prod,
    )
    from burn.ops.decomposition import (
        cholesky as cholesky,
        eigh as eigh,
        qr as qr,
        svd as svd,
    )
    from burn.ops.deform import deform_conv as deform_conv
    from burn.ops.elementwise import (
        abs as abs,
        add as add,
        ceil as ceil,
        div as div,
        erf as erf,
        exp as exp,
        expm1 as expm1,
        floor as floor,
        floor_div as floor_div,
        fmod as fmod,
        log as log,
        log1p as log1p,
        maximum as maximum,
        minimum as minimum,
        mul as mul,
        neg as neg,
        pow as pow,
        reciprocal as reciprocal,
        remainder as remainder,
        round as round,
        sign as sign,
        sqrt as sqrt,
        sub as sub,
        trunc as trunc,
        trunc_div as trunc_div,
    )
    from burn.ops.embedding import embedding as embedding
    from burn.ops.encoders import lookup as lookup, one_hot_encode as one_hot_encode
    from burn.ops.exact_integer import (
        integer_conv as integer_conv,
        integer_matmul as integer_matmul,
        quantized_conv as quantized_conv,
        quantized_matmul as quantized_matmul,
    )
    from burn.ops.experts import mixture_of_experts as mixture_of_experts
    from burn.ops.fold import (
        fold as fold,
        fold_axis as fold_axis,
        max_unpool as max_unpool,
        unfold as unfold,
        unfold_axis as unfold_axis,
    )
    from burn.ops.gradient import gradient as gradient
    from burn.ops.grid import affine_grid as affine_grid, grid_sample as grid_sample
    from burn.ops.grouped import (
        grouped_matmul as grouped_matmul,
        grouped_outer as grouped_outer,
    )
    from burn.ops.images import decode_image as decode_image
    from burn.ops.indexing import (
        compress as compress,
        depth_to_space as depth_to_space,
        gather_nd as gather_nd,
        getitem as getitem,
        nonzero as nonzero,
        one_hot as one_hot,
        one_hot_mask as one_hot_mask,
        slice as slice,
        space_to_depth as space_to_depth,
        take as take,
    )
    from burn.ops.layer_norm import (
        layer_norm as layer_norm,
        layer_norm_grad as layer_norm_grad,
        rms_norm as rms_norm,
        rms_norm_grad as rms_norm_grad,
    )
    from burn.ops.linalg import (
        cofactor as cofactor,
        det as det,
        inverse as inverse,
        matrix_exp as matrix_exp,
        pinv as pinv,
        slogdet as slogdet,
        solve as solve,
        solve_triangular as solve_triangular,
    )
    from burn.ops.linear_attention import linear_attention as linear_attention
    from burn.ops.logic import (
        equal as equal,
        greater as greater,
        greater_equal as greater_equal,
        isinf as isinf,
        isnan as isnan,
        less as less,
        less_equal as less_equal,
        logical_and as logical_and,
        logical_not as logical_not,
        logical_or as logical_or,
        logical_xor as logical_xor,
        not_equal as not_equal,
        where as where,
    )
    from burn.ops.loss import cross_entropy as cross_entropy, nll_loss as nll_loss
    from burn.ops.maps import (
        cast_map as cast_map,
        dict_vectorize as dict_vectorize,
        zip_map as zip_map,
    )
    from burn.ops.matmul import einsum as einsum, linear as linear, matmul as matmul
    from burn.ops.norm import (
        batch_norm as batch_norm,
        batch_norm_grad as batch_norm_grad,
        batch_norm_train as batch_norm_train,
        group_norm as group_norm,
        instance_norm as instance_norm,
        lrn as lrn,
    )
    from burn.ops.ordering import (
        argmax as argmax,
        argmin as argmin,
        argsort as argsort,
        hardmax as hardmax,
        sort as sort,
        topk as topk,
    )
    from burn.ops.packed import (
        dequantize_bnb4 as dequantize_bnb4,
        matmul_nbits as matmul_nbits,
        take_quantized as take_quantized,
        unpack_bits as unpack_bits,
        unpack_bnb4 as unpack_bnb4,
    )
    from burn.ops.padding import (
        center_crop_pad as center_crop_pad,
        flip as flip,
        pad as pad,
        reverse_sequence as reverse_sequence,
        roll as roll,
        stack as stack,
        tile as tile,
        trilu as trilu,
    )
    from burn.ops.pool import (
        adaptive_avg_pool as adaptive_avg_pool,
        adaptive_avg_spread as adaptive_avg_spread,
        avg_pool as avg_pool,
        lp_pool as lp_pool,
        max_pool as max_pool,
        max_pool_with_indices as max_pool_with_indices,
        window_argmax as window_argmax,
        window_gather as window_gather,
        window_scatter as window_scatter,
        window_spread as window_spread,
        window_sum as window_sum,
    )
    from burn.ops.quantize import (
        cast_e8m0 as cast_e8m0,
        dequantize as dequantize,
        fake_quantize as fake_quantize,
        quantization_range as quantization_range,
        quantize as quantize,
        quantizes as quantizes,
    )
    from burn.ops.quantized_rnn import dynamic_quantized_lstm as dynamic_quantized_lstm
    from burn.ops.random import (
        bernoulli as bernoulli,
        dropout as dropout,
        dropout_by_seed as dropout_by_seed,
        dropout_with_mask as dropout_with_mask,
        multinomial as multinomial,
        normal as normal,
        uniform as uniform,
    )
    from burn.ops.reduction import (
        all as all,
        any as any,
        axes_or_all as axes_or_all,
        max as max,
        mean as mean,
        min as min,
        reduce_l1 as reduce_l1,
        reduce_l2 as reduce_l2,
        std as std,
        sum as sum,
        var as var,
    )
    from burn.ops.resize import resize as resize
    from burn.ops.rnn import gru as gru, lstm as lstm, rnn as rnn
    from burn.ops.roi import max_roi_pool as max_roi_pool, roi_align as roi_align
    from burn.ops.rotary import (
        extend_cache as extend_cache,
        rotary_embedding as rotary_embedding,
        tensor_gather as tensor_gather,
        tensor_scatter as tensor_scatter,
    )
    from burn.ops.sampling import (
        gather_dot as gather_dot,
        gather_sum as gather_sum,
        scatter_sum as scatter_sum,
        tap_argmax as tap_argmax,
    )
    from burn.ops.scatter import (
        gather_elements as gather_elements,
        scatter_elements as scatter_elements,
        scatter_nd as scatter_nd,
    )
    from burn.ops.scores import (
        normalize as normalize,
        probit as probit,
        softmax_zero as softmax_zero,
    )
    from burn.ops.selection import (
        non_max_suppression as non_max_suppression,
        unique as unique,
    )
    from burn.ops.sequence import (
        absent as absent,
        element as element,
        fill_rows as fill_rows,
        has_element as has_element,
        sequence as sequence,
        sequence_at as sequence_at,
        sequence_erase as sequence_erase,
        sequence_insert as sequence_insert,
        sequence_joined as sequence_joined,
        sequence_length as sequence_length,
        sequence_reversed as sequence_reversed,
        split_to_sequence as split_to_sequence,
        stack_rows as stack_rows,
    )
    from burn.ops.shape import (
        chunk as chunk,
        concat as concat,
        detach as detach,
        flatten as flatten,
        permute as permute,
        reshape as reshape,
        shape as shape,
        size as size,
        split as split,
        squeeze as squeeze,
        transpose as transpose,
        unsqueeze as unsqueeze,
    )
    from burn.ops.signal import (
        blackman_window as blackman_window,
        dft as dft,
        hamming_window as hamming_window,
        hann_window as hann_window,
        mel_weight_matrix as mel_weight_matrix,
        stft as stft,
    )
    from burn.ops.softmax import (
        log_softmax as log_softmax,
        logsumexp as logsumexp,
        softmax as softmax,
    )
    from burn.ops.special import (
        erfinv as erfinv,
        gcd as gcd,
        lgamma as lgamma,
        polygamma as polygamma,
        scaled_bessel_i as scaled_bessel_i,
    )
    from burn.ops.svm import (
        pairwise_probabilities as pairwise_probabilities,
        pairwise_votes as pairwise_votes,
        squared_distance as squared_distance,
        svm_kernel as svm_kernel,
    )
    from burn.ops.text import (
        regex_full_match as regex_full_match,
        string_concat as string_concat,
        string_normalize as string_normalize,
        string_split as string_split,
        tfidf as tfidf,
        tokenize as tokenize,
    )
    from burn.ops.training import adagrad as adagrad, adam as adam, momentum as momentum
    from burn.ops.trees import tree_ensemble as tree_ensemble
    from burn.ops.trigonometry import (
        acos as acos,
        acosh as acosh,
        asin as asin,
        asinh as asinh,
        atan as atan,
        atan2 as atan2,
        atanh as atanh,
        cos as cos,
        cosh as cosh,
        sin as sin,
        sinh as sinh,
        tan as tan,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__, NAMES, function_hint)
    # Functions with the name of their module, or the module would take their place.
    keep_functions(
        __name__, *(name for name in __dir__() if f"{__name__}.{name}" in NAMES)
    )
