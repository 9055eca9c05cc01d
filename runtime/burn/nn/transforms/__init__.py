"""Changes of a model by the paths of its modules: adapters, dropout, checkpointing."""
