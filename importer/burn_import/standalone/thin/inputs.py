"""Messages about inputs of standalone modules."""

#: What stands before the name of a function or dtype in a message.
_PACKAGE = ""
