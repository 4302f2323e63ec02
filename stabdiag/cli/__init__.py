"""The command line: parse, call, write, exit."""
