"""Text to tokens: a tokenizer.json, or the bytes of UTF-8 where none is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from stabdiag.batches.features import Tokenizer
from stabdiag.errors import InputError, UsageError
from stabdiag.model import I64


def byte_tokenizer() -> Tokenizer:
    """The bytes of UTF-8, for text without a tokenizer; token ids stay without text."""
    return Tokenizer(
        unit="byte",
        described="no tokenizer was named: the bytes of UTF-8 stand for tokens",
        encode=_bytes,
        decode=lambda tokens: None,
    )


def _bytes(text: str) -> I64:
    data = text.encode("utf-8", "surrogatepass")
    return np.frombuffer(data, dtype=np.uint8).astype(np.int64)


def load_tokenizer(path: Path) -> Tokenizer:
    """A tokenizer.json of the package `tokenizers`.

    Raises:
        InputError: the file is missing or no tokenizer.
        UsageError: the package is not installed.
    """
    if not path.is_file():
        raise InputError(
            f"{path}: no such file", "Give the tokenizer.json of the model with --tokenizer."
        )
    try:
        from tokenizers import Tokenizer as FastTokenizer
    except ImportError as err:
        raise UsageError(
            "--tokenizer needs the package tokenizers", "pip install 'stabdiag[tokenizer]'"
        ) from err
    try:
        fast: Any = FastTokenizer.from_file(str(path))
    except Exception as err:  # the package raises bare Exception
        raise InputError(
            f"{path}: no tokenizer: {str(err).splitlines()[0][:200]}",
            "Give a tokenizer.json as `save_pretrained` writes it.",
        ) from err
    fast.no_truncation()
    fast.no_padding()

    def encode(text: str) -> I64:
        return np.asarray(fast.encode(text, add_special_tokens=False).ids, dtype=np.int64)

    def decode(tokens: I64) -> str | None:
        known = tokens[(tokens >= 0) & (tokens < fast.get_vocab_size())]
        text: str = fast.decode(known.tolist(), skip_special_tokens=False)
        return text

    return Tokenizer("token", f"{path.name}, {fast.get_vocab_size():,} tokens", encode, decode)
