"""The parsers in PyTorch: an encoder, decoders, and the three models that are compared."""
