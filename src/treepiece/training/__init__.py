"""Training: examples, batches, objectives, recipes, the loop and its checkpoints."""
