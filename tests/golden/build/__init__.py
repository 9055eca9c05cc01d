"""Our own small models, from which the golden sources are generated."""
