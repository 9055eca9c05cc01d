"""Machine code for 8-bit integers: products, and the quantization of their operands."""
