"""Readers: a path in, a LogTable out; one module a format, one line in the registry."""
