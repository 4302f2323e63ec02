"""Per-layer columns: the metric, and the layer as the log names it."""

from __future__ import annotations

import pytest

from stabdiag.columns import describe, understand
from tests.tables import table_of

ONE = [1.0, 1.0]


def layers_of(*names: str) -> dict[str, tuple[str, str | None]]:
    plan = understand(table_of({name: ONE for name in ("step", "loss", *names)}))
    return {role.column: (role.name, role.layer) for role in plan.roles if role.kind == "layer"}


@pytest.mark.parametrize(
    ("column", "metric", "layer"),
    [
        ("grad_norm/transformer.wte.weight", "grad_norm", "transformer.wte.weight"),
        (
            "gradients/transformer.h.0.mlp.c_fc.weight",
            "grad_norm",
            "transformer.h.0.mlp.c_fc.weight",
        ),
        ("grad norm/model.layers.0", "grad_norm", "model.layers.0"),
        ("grad_2.0_norm/rnn", "grad_norm", "rnn"),
        ("train/grad_2.0_norm/rnn.weight", "grad_norm", "rnn.weight"),
        ("grads/fc.0.bias", "grad_norm", "fc.0.bias"),
        ("grad/norm_gamma", "grad_norm", "norm_gamma"),
        ("optim/grad_norm/blocks.3.attn", "grad_norm", "blocks.3.attn"),
        ("grad_norm/layers/blocks.3.attn", "grad_norm", "layers/blocks.3.attn"),
        ("grad_norm.model.layers.0.weight", "grad_norm", "model.layers.0.weight"),
        ("model.layers.0.mlp.grad_norm", "grad_norm", "model.layers.0.mlp"),
        ("encoder.layer.1/grad_norm", "grad_norm", "encoder.layer.1"),
        ("gradients/fc.weight/norm", "grad_norm", "fc.weight"),
        ("param_norm/head", "param_norm", "head"),
        ("params norm/transformer.wte", "param_norm", "transformer.wte"),
        ("parameters/transformer.wte.weight", "param_norm", "transformer.wte.weight"),
        ("weights/fc.weight", "param_norm", "fc.weight"),
        ("weight_norm/fc.weight", "param_norm", "fc.weight"),
        ("grad_param_ratio/fc.weight", "grad_param_ratio", "fc.weight"),
        ("update_norm/fc.weight", "update_norm", "fc.weight"),
        ("activation_max/decoder.block.11.wo", "activation_max", "decoder.block.11.wo"),
        ("activations/blocks.0/max", "activation_max", "blocks.0"),
        ("token_embedding_act_abs_mean", "activation_max", "token_embedding"),
        ("grad/norm/blocks.0.weight", "grad_norm", "blocks.0.weight"),
        ("l2_norm/grad/blocks.0.weight", "grad_norm", "blocks.0.weight"),
        ("l2_norm/param/blocks.0.weight", "param_norm", "blocks.0.weight"),
        ("grad_norm/model.norm", "grad_norm", "model.norm"),
        ("grad_norm/norm", "grad_norm", "norm"),
        ("gradients/layers.0.attention_norm", "grad_norm", "layers.0.attention_norm"),
    ],
)
def test_the_layer_is_what_remains_of_the_name(column: str, metric: str, layer: str) -> None:
    assert layers_of(column, "gradients/other.weight")[column] == (metric, layer)


def test_one_statistic_of_several_is_the_norm() -> None:
    found = layers_of(
        *(f"grad/{layer}.{end}" for layer in ("a.w", "b.w") for end in ("norm", "max"))
    )
    assert found == {"grad/a.w.norm": ("grad_norm", "a.w"), "grad/b.w.norm": ("grad_norm", "b.w")}


def test_a_metric_split_around_the_layer_is_taken_off_all_of_them() -> None:
    found = layers_of("grad/fc.0_norm", "grad/head_norm")
    assert found == {
        "grad/fc.0_norm": ("grad_norm", "fc.0"),
        "grad/head_norm": ("grad_norm", "head"),
    }


@pytest.mark.parametrize(
    "column",
    [
        *(
            "grad_norm/all",
            "grad_2.0_norm_total",
            "grads/norm",
            "gradients/total",
            "param_norm/all",
        ),
        *(
            "grad_norm/clipped",
            "gradients/global_norm",
            "grad/norm/total",
            "grad/clip_frac",
            "gradients/fc.weight/std",
            "grad_norm/mean",
        ),
        *("grad_norm", "train/grad_norm", "update/value_loss", "weight_decay", "weights/count"),
        *("norm/avg_shift_k", "train_grad_norm", "grad_norm_clipped", "max_activation"),
    ],
)
def test_totals_and_statistics_are_no_layers(column: str) -> None:
    assert column not in layers_of(column)


def test_a_layer_is_read_once() -> None:
    found = layers_of("grad_norm/fc", "gradients/fc", "grad_norm/head")
    assert list(found) == ["grad_norm/fc", "grad_norm/head"]
    maxima = layers_of("activations/fc/mean", "activations/fc/max")
    assert list(maxima) == ["activations/fc/max"]


def test_layers_of_a_metric_are_described_together() -> None:
    names = [f"gradients/blocks.{i}.weight" for i in range(48)]
    cells: dict[str, list[object]] = {"step": [10, 20, 30], "loss": [3.0, None, 2.0]}
    table = table_of(cells | {name: [1.0, 1.0, 1.0] for name in names})
    lines = {line.column: line for line in describe(table, understand(table))}
    assert set(lines) == {"step", "loss", "gradients/* (48 layers)"}
    assert lines["gradients/* (48 layers)"].points == 3
    assert (lines["loss"].points, lines["loss"].cadence) == (2, 20)
