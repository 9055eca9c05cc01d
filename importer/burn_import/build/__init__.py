"""Hooks of build systems; all of them call the pipeline of the command."""
