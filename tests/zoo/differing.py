"""Where keys of imported models are not PyTorch's, and why."""

from collections.abc import Iterator, Mapping

FOLDERS = ("arch", "pytorch")

LIFTED = "the exporter computed it once: positions, masks, tables, numbers of a formula"
FORM = "the exporter stored another form of a weight: reshaped, or with others in it"
ZEROS = "it is zeros, which are added for nothing or made where they are read"
NUMBER = "it is one number, which is written in the source"
FOLDED = "it is multiplied by what is fixed, and the file does not name it"
TIED = "the file names a tied weight once, by the name of a module that does not run"
TWICE = "the trace runs a layer that has two names under the first of them both times"
AROUND = "it is a buffer in a module that we have a layer for: the one around holds it"
SUMMED = "the norm multiplies by 1 + weight: the exporter stored the sum without a key"
FUNCTION = "the matrices are pieces of in_proj_weight, which the exporter stored turned"
UNNAMED = "an author's own parameter, of which the file does not have the name"

COMPUTED = "positions without a key, which the source computes where they are read"

_BY_REASON: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    COMPUTED: {
        "arch/distilbert_qa.ts-op17": ("missing m.distilbert.embeddings.position_ids",),
        "pytorch/bert_tiny.ts-op17": ("missing m.embeddings.position_ids",),
        "arch/bert.ts-op11": ("missing m.embeddings.position_ids",),
        "arch/bert.ts-op17": ("missing m.embeddings.position_ids",),
        "arch/bert_seqcls.ts-op17": ("missing m.bert.embeddings.position_ids",),
        "arch/clip_text.ts-op17": ("missing m.text_model.embeddings.position_ids",),
    },
    LIFTED: {
        "arch/beit.dynamo-op20": ("more m.beit.layers.N",),
        "arch/beit.ts-op14": ("more m.beit.layers.N.attention",),
        "arch/clip_vision.dynamo-op20": ("more m.vision_model.embeddings",),
        "arch/detector_matrix_nms.dynamo-op20": ("more the model",),
        "arch/detr.dynamo-op20": (
            "more m.model.decoder.layers.N",
            "more m.model.decoder.layers.N.encoder_attn",
            "more m.model.encoder.layers.N.self_attn",
        ),
        "arch/detr.ts-op14": (
            "more m.model.decoder.layers.N.encoder_attn",
            "more m.model.decoder.layers.N.self_attn",
            "more m.model.encoder.layers.N.self_attn",
        ),
        "arch/diffusers_unet2d.dynamo-op20": ("more m.time_proj",),
        "arch/diffusers_unet2d.ts-op14": ("more m.time_proj",),
        "arch/diffusers_unet2d_condition.dynamo-op20": ("more m.time_proj",),
        "arch/diffusers_unet2d_condition.ts-op14": ("more m.time_proj",),
        "arch/dpt.dynamo-op20": ("more m.dpt.embeddings",),
        "arch/dpt.ts-op14": ("more m.dpt.embeddings",),
        "arch/mel_stft.dynamo-op20": ("more the model",),
        "arch/patchtsmixer.dynamo-op20": ("more m.model",),
        "arch/recsys_multi_input.dynamo-op20": ("more the model",),
        "arch/sam_mask_decoder.dynamo-op20": (
            "more m.sam.mask_decoder",
            "more m.sam.mask_decoder.transformer",
            "more m.sam.mask_decoder.transformer.layers.N",
            "more m.sam.prompt_encoder",
        ),
        "arch/sam_mask_decoder.ts-op14": (
            "more m.sam.mask_decoder",
            "more m.sam.prompt_encoder",
            "more m.sam.prompt_encoder.shared_embedding",
            "more m.sam.shared_image_embedding",
        ),
        "arch/slicing_reductions.dynamo-op20": ("more the model",),
        "arch/spatial_transformer.dynamo-op20": ("more the model",),
        "arch/superpoint_like_swin2sr.dynamo-op20": (
            "more m.swin2sr.encoder.stages.N.layers.N.attention.self",
        ),
        "arch/superpoint_like_swin2sr.ts-op14": (
            "more m.swin2sr.encoder.stages.N.layers.N.attention.self",
        ),
        "arch/swin.dynamo-op20": ("more m.swin.encoder.layers.N.blocks.N.attention",),
        "arch/swin.ts-op13": ("more m.swin.encoder.layers.N.blocks.N.attention",),
        "arch/timm_test_vit.dynamo-op20": ("more the model",),
        "arch/whisper_encoder.dynamo-op20": ("more m",),
        "arch/whisper_encoder.ts-op17": ("more m",),
    },
    FORM: {
        "arch/tcn_1d.ts-op11": ("more the model",),
        "arch/detr.dynamo-op20": (
            "more m.model.backbone.model.embedder.embedder",
            "more m.model.backbone.model.encoder.stages.N.layers.N.layer.N",
            "more m.model.backbone.model.encoder.stages.N.layers.N.shortcut",
        ),
        "arch/detr.ts-op14": (
            "more m.model.backbone.model.embedder.embedder",
            "more m.model.backbone.model.encoder.stages.N.layers.N.layer.N",
            "more m.model.backbone.model.encoder.stages.N.layers.N.shortcut",
        ),
        "arch/mamba.dynamo-op20": (
            "more m.backbone.layers.N.mixer",
            "more m.backbone.layers.N.mixer.conv1d",
        ),
        "arch/mamba.ts-op14": (
            "more m.backbone.layers.N.mixer",
            "more m.backbone.layers.N.mixer.conv1d",
        ),
        "arch/mixtral.dynamo-op20": ("more m.model.layers.N.mlp.experts",),
        "arch/poolformer.dynamo-op20": ("more m.poolformer.encoder.block.N.N",),
        "arch/poolformer.ts-op11": ("more m.poolformer.encoder.block.N.N",),
        "arch/tcn_1d.dynamo-op20": ("more c.N", "more the model"),
        "arch/timm_test_convnext.dynamo-op20": ("more stages.N.blocks.N",),
        "arch/timm_test_convnext3.dynamo-op20": ("more stages.N.blocks.N",),
    },
    ZEROS: {
        "arch/marian_decoder.dynamo-op20": ("missing m.final_logits_bias",),
        "arch/marian_decoder.ts-op17": ("missing m.final_logits_bias",),
        "arch/roberta_tokcls.dynamo-op20": (
            "missing m.roberta.embeddings.token_type_ids",
        ),
        "arch/roberta_tokcls.ts-op17": ("missing m.roberta.embeddings.token_type_ids",),
        "arch/superpoint_like_swin2sr.dynamo-op20": ("missing m.swin2sr.mean",),
        "arch/superpoint_like_swin2sr.ts-op14": ("missing m.swin2sr.mean",),
    },
    AROUND: {
        "arch/gemma2.dynamo-op20": (
            "missing m.model.embed_tokens.embed_scale",
            "more m.model",
        ),
        "arch/gemma2.ts-op17": (
            "missing m.model.embed_tokens.embed_scale",
            "more m.model",
        ),
    },
    SUMMED: {
        "arch/gemma2.dynamo-op20": ("more m.model.layers.N",),
        "arch/gemma2.ts-op17": ("more m.model.layers.N",),
    },
    NUMBER: {
        "arch/stablelm.dynamo-op20": ("missing m.model.rotary_emb.inv_freq",),
        "arch/stablelm.ts-op17": ("missing m.model.rotary_emb.inv_freq",),
    },
    FOLDED: {
        "arch/detr.ts-op14": (
            "missing m.model.decoder.layers.N.self_attn.k_proj.weight",
            "missing m.model.decoder.layers.N.self_attn.q_proj.weight",
            "missing m.model.decoder.layers.N.self_attn.v_proj.weight",
        ),
        "arch/superpoint_like_swin2sr.ts-op14": (
            "missing m.swin2sr.encoder.stages.N.layers.N.attention.self."
            "continuous_position_bias_mlp.N.weight",
        ),
    },
    TIED: {
        "arch/marian_decoder.ts-op17": ("missing m.model.decoder.embed_tokens.weight",),
        "arch/t5_decoder.ts-op17": ("missing m.decoder.embed_tokens.weight",),
        "arch/t5_encoder.ts-op17": ("missing m.encoder.embed_tokens.weight",),
    },
    TWICE: {
        "pytorch/tied_weights.ts-op17": (
            "missing blk2.bias",
            "missing blk2.weight",
        ),
    },
    FUNCTION: {
        "arch/nn_transformer.ts-op14": (
            "missing t.decoder.layers.N.multihead_attn.weight",
            "missing t.decoder.layers.N.self_attn.weight",
            "missing t.encoder.layers.N.self_attn.weight",
        ),
    },
    UNNAMED: {
        "arch/mixtral.ts-op17": (
            "missing m.model.layers.N.mlp.gate.weight",
            "more m.model.layers.N.mlp.gate.linear",
        ),
    },
}


def _lines() -> Iterator[tuple[str, str, str]]:
    for reason, files in _BY_REASON.items():
        for name, lines in files.items():
            yield from ((name, line, reason) for line in lines)


#: By file: what differs, in the words of ``exported_state.differences``, and why.
DIFFERING: dict[str, dict[str, str]] = {}
for _name, _line, _reason in _lines():
    DIFFERING.setdefault(_name, {})[_line] = _reason
