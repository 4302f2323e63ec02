"""Reporters: a Report in, a text out."""
