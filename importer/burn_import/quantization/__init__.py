"""Post-training quantization of model files, with the accuracy that it costs."""
