"""Parameter names as different code bases spell them."""

from __future__ import annotations

import re

# Each convention maps the names of `models.py` piece by piece; `#` stands for the block's number.
CONVENTIONS: dict[str, dict[str, str]] = {
    "gpt2": {
        "tok": "transformer.wte", "pos": "transformer.wpe", "norm_f": "transformer.ln_f",
        "head": "lm_head", "blocks.#": "transformer.h.#", "norm1": "ln_1", "norm2": "ln_2",
        "attn.qkv": "attn.c_attn", "attn.q": "attn.q_attn", "attn.k": "attn.k_attn",
        "attn.v": "attn.v_attn", "attn.out": "attn.c_proj", "mlp.up": "mlp.c_fc",
        "mlp.down": "mlp.c_proj",
    },
    "llama": {
        "tok": "model.embed_tokens", "pos": "model.embed_positions", "norm_f": "model.norm",
        "head": "lm_head", "blocks.#": "model.layers.#", "norm1": "input_layernorm",
        "norm2": "post_attention_layernorm", "attn.qkv": "self_attn.qkv_proj",
        "attn.q": "self_attn.q_proj", "attn.k": "self_attn.k_proj", "attn.v": "self_attn.v_proj",
        "attn.out": "self_attn.o_proj", "mlp.up": "mlp.up_proj", "mlp.down": "mlp.down_proj",
    },
    "bert": {
        "tok": "embeddings.word_embeddings", "pos": "embeddings.position_embeddings",
        "norm_f": "final_layer_norm", "head": "cls.predictions.decoder",
        "blocks.#": "encoder.layer.#", "norm1": "attention.output.LayerNorm",
        "norm2": "output.LayerNorm", "attn.qkv": "attention.self.query_key_value",
        "attn.q": "attention.self.query", "attn.k": "attention.self.key",
        "attn.v": "attention.self.value", "attn.out": "attention.output.dense",
        "mlp.up": "intermediate.dense", "mlp.down": "output.dense",
    },
    "blocks": {
        "tok": "tok_emb", "pos": "pos_emb", "norm_f": "norm", "head": "head",
        "blocks.#": "blocks.#", "norm1": "norm1", "norm2": "norm2", "attn.qkv": "attn.qkv",
        "attn.q": "attn.q", "attn.k": "attn.k", "attn.v": "attn.v", "attn.out": "attn.proj",
        "mlp.up": "mlp.fc1", "mlp.down": "mlp.fc2",
    },
    "torch": {
        "tok": "embedding", "pos": "positional", "norm_f": "norm", "head": "generator",
        "blocks.#": "encoder.layers.#", "norm1": "norm1", "norm2": "norm2",
        "attn.qkv": "self_attn.in_proj", "attn.q": "self_attn.q_proj",
        "attn.k": "self_attn.k_proj", "attn.v": "self_attn.v_proj",
        "attn.out": "self_attn.out_proj", "mlp.up": "linear1", "mlp.down": "linear2",
    },
    "megatron": {
        "tok": "embedding.word_embeddings", "pos": "embedding.position_embeddings",
        "norm_f": "decoder.final_layernorm", "head": "output_layer",
        "blocks.#": "decoder.layers.#", "norm1": "input_layernorm", "norm2": "pre_mlp_layernorm",
        "attn.qkv": "self_attention.linear_qkv", "attn.q": "self_attention.linear_q",
        "attn.k": "self_attention.linear_k", "attn.v": "self_attention.linear_v",
        "attn.out": "self_attention.linear_proj", "mlp.up": "mlp.linear_fc1",
        "mlp.down": "mlp.linear_fc2",
    },
}  # fmt: skip


def spelled(name: str, convention: str) -> str:
    """Return the parameter `name` of `models.py` as the convention writes it.

    LSTM, MLP and conv names, and the convention `plain`, are kept as they are.
    """
    pieces = CONVENTIONS.get(convention)
    if pieces is None:
        return name
    stem, _, leaf = name.rpartition(".")
    block = re.match(r"blocks\.(\d+)\.(.+)", stem)
    if block:
        head = pieces["blocks.#"].replace("#", block.group(1))
        role = pieces.get(block.group(2), block.group(2))
        # torch's own attention keeps Q, K, V as a bare parameter, not as a module's weight
        return f"{head}.{role}{'_' if role.endswith('in_proj') else '.'}{leaf}"
    return f"{pieces.get(stem, stem)}.{leaf}"
