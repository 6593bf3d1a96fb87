"""The form "custom": operators of ONNX Runtime with our kernels, in a library that needs neither Python nor PyTorch."""
