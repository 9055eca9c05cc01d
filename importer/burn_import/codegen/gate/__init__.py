"""The validation of generated source against tables of allowed syntax."""
