"""Class merging: classes with anti-unifiable bodies become one, with parameters."""
