"""Corpora: a path in, the wanted samples out; one module a kind, never the whole in memory."""

from __future__ import annotations

from stabdiag.batches.sources.folder import Corpus, open_corpus

__all__ = ["Corpus", "open_corpus"]
