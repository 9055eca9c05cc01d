"""Computing only the rows of values that are used."""
