"""Building blocks of source: names, expressions, traced statements, dimensions.

This package knows nothing of modules; the recovery of their structure and the emission
of source build on it.
"""
