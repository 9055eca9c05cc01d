"""Branches and loops whose condition is known only at run time."""
