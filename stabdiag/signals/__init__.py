"""Signals: pure functions on arrays."""
