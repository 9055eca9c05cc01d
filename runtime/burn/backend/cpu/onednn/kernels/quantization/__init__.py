"""Int8 layers with oneDNN."""
