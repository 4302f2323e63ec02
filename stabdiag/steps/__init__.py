"""The five workflow steps, one module each."""
