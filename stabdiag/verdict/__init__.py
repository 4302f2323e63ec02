"""From steps and attribution to the verdict: health, sentence, what would settle it, what now."""
