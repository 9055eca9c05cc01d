"""What source is made of: names, expressions, traced statements, extents.

Nothing here knows of modules; the recovery of their structure builds on it, and so
does emission.
"""
