"""A model as an ONNX file, its operators as functions, as plain operations, or as operators with our kernels."""
