"""Names of values, parameters and record keys in generated source."""
