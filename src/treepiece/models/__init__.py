"""The parsers in PyTorch: an encoder, decoders on it, and the three models that are compared."""
