"""Loop rerolling: equal statements over the members of a list become a `for`."""
