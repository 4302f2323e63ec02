"""The layers: every rank in a table, what is odd of each, and the maps of them over time."""

from __future__ import annotations

from stabdiag.findings import LayerRank, Report
from stabdiag.reporters.blocks import Block, prose
from stabdiag.reporters.html.blocks_html import as_html, inline
from stabdiag.reporters.html.document import folded, section, table, text
from stabdiag.reporters.html.heat import by_block, by_layer, heat
from stabdiag.reporters.html.places import layer, place
from stabdiag.reporters.layer_pages import moment_section, plan_section
from stabdiag.reporters.numbers import count, number, times

_FIRST, _MOST = 12, 400
_HEADER = (
    *("rank", "layer", "role", "of median", "of peers", ">= 10x", "apart", "norm", "growth"),
    *("score", "onset"),
    "what is odd",
)


def layers(report: Report) -> list[str]:
    """Return the ranking, how to bisect, and each logged metric over time."""
    return [*_ranking(report), *_maps(report), *as_html(_bisection(report))]


def _bisection(report: Report) -> tuple[Block, ...]:
    return (*moment_section(report.layer_moment), *plan_section(report.layer_plan))


def _ranking(report: Report) -> list[str]:
    if not report.layers:
        return []
    rows = [_row(report, one) for one in report.layers[:_MOST]]
    right = (3, 4, 5, 6, 7, 8, 9, 10)
    body = [table(_HEADER, rows[:_FIRST], right=right)]
    if len(rows) > _FIRST:
        rest = table(_HEADER, rows[_FIRST:], right=right)
        body += folded(f"The other {count(len(rows) - _FIRST, 'layer')}", [rest])
    if len(report.layers) > _MOST:
        more = count(len(report.layers) - _MOST, "layer")
        body.append(f'<p class="dim">and {more} more, in the JSON report</p>')
    body.append(
        "<p class=\"dim\">Gradient over the median layer's and over its peers'; share of the points at "
        "which that is 10 or more, and at which it is out of proportion for a layer of its kind; usual "
        "share of the global norm's square; growth of the weights; highest score and where it began."
        "</p>"
    )
    return section("layers", "Layers", body)


def _row(report: Report, one: LayerRank) -> list[str]:
    return [
        str(one.rank),
        layer(one.layer),
        text(one.role.replace("_", " ")),
        times(one.ratio_to_median),
        times(one.ratio_to_peers),
        _share(one.tenfold),
        _share(one.consistent),
        _share(one.share),
        times(one.param_growth),
        number(one.peak_score),
        "-" if one.onset_step is None else place(report, one.onset_step, words=str(one.onset_step)),
        inline(prose(one.why)),
    ]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"


def _maps(report: Report) -> list[str]:
    """The maps, the first one open; one id each, since a page may hold several."""
    body: list[str] = []
    for order, one in enumerate(report.heat_maps):
        title = f"{one.metric.replace('_', ' ')} of each layer"
        drawn = heat(one, by_layer(one), report, f"heat-{order}")
        if one.left_out and one.blocks:
            held = f"{count(len(one.layers), 'layer')} of them, one by one"
            drawn = [*heat(one, by_block(one), report, f"blocks-{order}"), *folded(held, drawn)]
        body += folded(title, drawn, unfolded=order == 0)
    return section("over-time", "Layers over time", body)
