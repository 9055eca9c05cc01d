"""What rounding and lower precision may change."""
