"""Passes that lower the precision to bfloat16 or int8."""
