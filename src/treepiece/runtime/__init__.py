"""The parser without PyTorch: ONNX Runtime sessions, and `Parser` on top of them."""
