"""Tools of graph rewriting: dataflow queries, patterns, renaming, array facts."""
