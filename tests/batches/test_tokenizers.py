"""Text in tokens where a tokenizer is named; what is missing is said."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.batches.corpora import FIRST, WORDS, batch_of, documents, write_corpus, write_log
from tests.command_line import Command


def word_tokenizer(path: Path) -> Path:
    """A tokenizer.json that gives each known word a number, and other words 0."""
    vocabulary = {word: i for i, word in enumerate(["[UNK]", *dict.fromkeys(WORDS), "spam"])}
    path.write_text(
        json.dumps(
            {
                "version": "1.0",
                "truncation": None,
                "padding": None,
                "added_tokens": [],
                "normalizer": None,
                "pre_tokenizer": {"type": "Whitespace"},
                "post_processor": None,
                "decoder": None,
                "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
            }
        ),
        encoding="utf-8",
    )
    return path


def test_text_is_counted_in_tokens(command: Command, folder: Path) -> None:
    pytest.importorskip("tokenizers")
    tokenizer = word_tokenizer(folder / "tokenizer.json")
    corpus = write_corpus(folder, "jsonl", documents({5: "unheard of words here " * 15}))
    log = write_log(folder / "run.jsonl")
    batch = batch_of(command, log, "--data", corpus, "--tokenizer", tokenizer)
    first = batch["sequences"][0]
    assert (first["id"], first["length"]) == (str(FIRST + 5), 60)
    assert batch["data"]["unit"] == "token"
    assert any("of its tokens are rare or absent" in reason for reason in first["reasons"])


def test_token_ids_become_text(command: Command, folder: Path) -> None:
    pytest.importorskip("tokenizers")
    tokenizer = word_tokenizer(folder / "tokenizer.json")
    rng = np.random.default_rng(0)
    ids = rng.integers(1, 30, (960, 40))
    ids[FIRST + 1] = len(dict.fromkeys(WORDS)) + 1
    np.save(folder / "t.npy", ids)
    log = write_log(folder / "run.jsonl")
    batch = batch_of(command, log, "--data", "t.npy", "--tokenizer", tokenizer)
    assert batch["sequences"][0]["id"] == str(FIRST + 1)
    assert batch["sequences"][0]["excerpt"].startswith("spam spam spam")
    assert not any("--tokenizer" in line for line in batch["not_measured"])


def test_a_missing_package_or_file_is_said(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, corpus = write_log(folder / "run.jsonl"), write_corpus(folder, "jsonl", documents())
    gone = command("batch", log, "--data", corpus, "--tokenizer", "gone.json")
    assert (gone.code, len(gone.remarks)) == (2, 2)
    assert "gone.json" in gone.remarks[0]
    tokenizer = word_tokenizer(folder / "tokenizer.json")
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    absent = command("batch", log, "--data", corpus, "--tokenizer", tokenizer)
    assert (absent.code, len(absent.remarks)) == (2, 2)
    assert "stabdiag[tokenizer]" in absent.remarks[1]


def test_a_file_that_is_no_tokenizer_is_said(command: Command, folder: Path) -> None:
    pytest.importorskip("tokenizers")
    log, corpus = write_log(folder / "run.jsonl"), write_corpus(folder, "jsonl", documents())
    wrong = folder / "wrong.json"
    wrong.write_text('{"model": 3}')
    done = command("batch", log, "--data", corpus, "--tokenizer", wrong)
    assert (done.code, len(done.remarks)) == (2, 2)
    assert "no tokenizer" in done.remarks[0]
