"""The check of generated source against tables of allowed syntax, before it is used."""
