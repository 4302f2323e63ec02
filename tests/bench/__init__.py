"""What an analysis costs beside the plain library read of the same file."""
