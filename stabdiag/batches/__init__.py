"""`stabdiag batch`: the batch before an onset, retrieved from its corpus and inspected."""
