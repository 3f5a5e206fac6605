"""Trained models as bundles for the runtime: ONNX graphs, single precision and int8, checked against PyTorch."""
