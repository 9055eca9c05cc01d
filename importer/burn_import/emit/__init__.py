"""From a tree of parts to the text of a Python module, checked before it is used."""
