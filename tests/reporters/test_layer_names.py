"""Names of layers in little room: they fit, and they stay different."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from stabdiag.reporters.layer_names import labels, shortened

NAMES = [
    f"model.{side}.layers.{i}.{part}.weight"
    for side in ("encoder", "decoder")
    for i in (0, 1, 10, 11)
    for part in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.out_proj", "mlp.fc1")
]


@given(st.lists(st.text(min_size=1, max_size=60), max_size=12), st.integers(6, 40))
def test_every_name_fits(names: list[str], width: int) -> None:
    short = shortened(names, width)
    assert len(short) == len(names)
    assert all(cell_len(text) <= width for text in short)
    whole = [name for name in names if cell_len(name) <= width // 2]
    assert all(name in short for name in whole)


def test_long_names_stay_different() -> None:
    for width in (12, 26, 30):
        assert len(set(shortened(NAMES, width))) == len(NAMES)


def test_names_that_are_alike_at_both_ends_are_cut_elsewhere() -> None:
    names = ["transformer.wte.weight", "transformer.wpe.weight"]
    assert shortened(names, 13) == ["~r.wte.weight", "~r.wpe.weight"]
    deep = [f"{'a' * 30}.{x}.{'b' * 30}" for x in ("one", "two")]
    assert len(set(shortened(deep, 12))) == 2


def test_what_goes_without_saying_is_said_once() -> None:
    names = ["model.layers.0.q.weight", "model.layers.0.q.bias", "model.layers.1.q.weight", "head"]
    label, said = labels(names)
    assert list(label.values()) == ["0.q", "0.q.bias", "1.q", "head"]
    assert said == "names without model.layers. and .weight"


def test_a_module_beside_its_tensor_keeps_the_whole_name() -> None:
    label, said = labels(["fc", "fc.weight"])
    assert label == {"fc": "fc", "fc.weight": "fc.weight"}
    assert said == ""
