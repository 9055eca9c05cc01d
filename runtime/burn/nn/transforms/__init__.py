"""Transformations of a model by module paths: adapters, dropout, checkpointing."""
