"""From evidence to causes with probabilities."""
