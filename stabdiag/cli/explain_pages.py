"""The pages of `explain`: the list of topics, one rule in full, one cause in full."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from stabdiag.causes.catalogue import CAUSE_PAGES, CausePage
from stabdiag.causes.weights import WEIGHTS
from stabdiag.config import Config
from stabdiag.errors import UsageError
from stabdiag.reporters.blocks import (
    Blank,
    Block,
    Heading,
    Labelled,
    Paragraph,
    Span,
    Words,
    prose,
    words,
)
from stabdiag.reporters.numbers import nats, number
from stabdiag.rules import CATALOGUE, Limits, Rule, Threshold

_STEP_TITLES = {
    1: "Step 1, timeline",
    2: "Step 2, batch",
    3: "Step 3, numerics",
    4: "Step 4, layers",
    5: "Step 5, initialization",
    0: "Beside the five steps",
}
_DIGITS = 6  # a threshold is shown as it was written


def topics_page() -> tuple[Block, ...]:
    """Return every rule by workflow step, then every cause, each in one line."""
    blocks: list[Block] = []
    for step, title in _STEP_TITLES.items():
        rows = tuple(
            (words(Span(f"{rule.id} {rule.severity.word}", "strong")), _in_short(rule))
            for rule in CATALOGUE
            if rule.workflow_step == step
        )
        if rows:
            blocks += [Heading(title), Labelled(rows)]
    causes = tuple((words(Span(page.cause, "strong")), prose(page.what)) for page in CAUSE_PAGES)
    blocks += [Heading("Causes"), Labelled(causes), Blank()]
    blocks.append(Paragraph(prose("`stabdiag explain SD101` or a cause shows one in full.")))
    return tuple(blocks)


def topics() -> tuple[str, ...]:
    """Return what can be explained: each rule's id and name, each cause."""
    rules = (name for rule in CATALOGUE for name in (rule.id, rule.name))
    return (*rules, *(page.cause for page in CAUSE_PAGES))


def all_pages(config: Config) -> tuple[tuple[Block, ...], ...]:
    """Return the page of every rule, then of every cause."""
    rules = (rule_page(rule, config) for rule in CATALOGUE)
    return (*rules, *(cause_page(page) for page in CAUSE_PAGES))


def page_of(topic: str, config: Config) -> tuple[Block, ...]:
    """Return the page of a rule (by id or name) or a cause.

    Raises:
        UsageError: no such rule or cause; the message has the nearest ones.
    """
    asked = topic.strip().casefold()
    for rule in CATALOGUE:
        if asked in (rule.id.casefold(), rule.name.casefold()):
            return rule_page(rule, config)
    for page in CAUSE_PAGES:
        if asked.replace("-", "_").replace(" ", "_") == page.cause.casefold():
            return cause_page(page)
    raise UsageError(f"there is no rule or cause {topic!r}", _nearest(asked))


def rule_page(rule: Rule, config: Config) -> tuple[Block, ...]:
    """Return all that the catalogue says of `rule`, with the thresholds in force."""
    in_force = Limits(CATALOGUE, config.thresholds).all()
    title = f"{rule.id} {rule.name}"
    where = _STEP_TITLES[rule.workflow_step]
    rows = [
        ("severity", words(f"{rule.severity.word}, as a rule")),
        ("found by", words(where)),
        ("needs", words(", ".join(rule.needs) or "nothing in particular")),
        ("what", prose(rule.what)),
        ("why bad", prose(rule.why_bad)),
        ("do", prose(rule.advice)),
        ("example", prose(rule.example)),
        ("sources", words("; ".join(rule.sources))),
    ]
    blocks: list[Block] = [Heading(title), _rows(rows)]
    if rule.thresholds:
        limits = tuple(_threshold(rule, one, in_force, config) for one in rule.thresholds)
        blocks += [Heading("How it is decided"), Labelled(limits)]
        blocks.append(
            Paragraph(
                prose(' To set one: [thresholds] in stabdiag.toml, such as "SD101.min_score" = 7.')
            )
        )
    return tuple(blocks)


def cause_page(page: CausePage) -> tuple[Block, ...]:
    """Return all that is known of one cause."""
    signs = tuple(_sign(page.cause, sign) for sign in page.signs)
    steps = tuple((words("-"), prose(step)) for step in page.do_this)
    blocks: list[Block] = [
        Heading(page.cause),
        _rows([("what", prose(page.what)), ("decided", prose(page.how_decided))]),
    ]
    for title, rows in (("Signs that speak for it, in nats", signs), ("What to do", steps)):
        if rows:
            blocks += [Heading(title), Labelled(rows)]
    if page.sources:
        blocks += [Heading("Sources"), Paragraph(words(f" {'; '.join(page.sources)}"))]
    return tuple(blocks)


def _sign(cause: str, sign: str) -> tuple[Words, Words]:
    weight = WEIGHTS.get(sign, {}).get(cause)
    text = sign.replace("_", " ")
    return words(Span("-" if weight is None else nats(weight), "dim")), words(text)


def _rows(rows: list[tuple[str, Words]]) -> Labelled:
    filled = [(words(Span(name, "dim")), text) for name, text in rows if any(s.text for s in text)]
    return Labelled(tuple(filled))


def _threshold(
    rule: Rule, threshold: Threshold, in_force: Mapping[str, float], config: Config
) -> tuple[Words, Words]:
    """One limit: the value in force, its unit, where it differs from the catalogue, the reason."""
    key = f"{rule.id}.{threshold.name}"
    limit = Span(f"{number(in_force[key], _DIGITS)} {threshold.unit}", "strong")
    own = ""
    if key in config.thresholds:
        own = f" (from {config.source}; the catalogue says {number(threshold.value, _DIGITS)})"
    return words(Span(key, "dim")), words(limit, f"{own}. ", *prose(threshold.why))


def _in_short(rule: Rule) -> Words:
    return words(Span(f"{rule.name}: ", "strong"), *prose(rule.what))


def _nearest(asked: str) -> str:
    by_word = {name.casefold(): name for name in topics()}
    near = difflib.get_close_matches(asked, by_word, n=3, cutoff=0.0)
    names = ", ".join(by_word[name] for name in near)
    return f"The nearest are {names}; `stabdiag explain` lists all."
