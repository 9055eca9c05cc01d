"""Attributes of a class: modules, lists of modules, stored arrays, tied weights."""
