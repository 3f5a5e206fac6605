"""The page with the results, from the files of the parts alone: no PyTorch, no data, in seconds."""
