"""The catalogue of rules."""
