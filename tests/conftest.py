"""Settings that every test shares."""

from hypothesis import settings

settings.register_profile("default", derandomize=True, deadline=None, max_examples=30)
settings.register_profile("nightly", deadline=None, max_examples=200)
settings.load_profile("default")
