"""Assembly of a file from classes, functions and imports."""
