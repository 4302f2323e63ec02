"""stabdiag: the post-mortem analyzer for training logs."""

__version__ = "0.1.0"
