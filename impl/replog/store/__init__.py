"""Real files: segments, record batches, checkpoints, recovery."""
