"""Graphs of failures in logs are the graphs that failed."""

import json

import numpy as np
import pytest

from tests.fuzz.generator import generate
from tests.fuzz.storage import case_as_json, case_of_json


@pytest.mark.parametrize("profile", ["operators", "networks", "types"])
@pytest.mark.parametrize("seed", [3, 4, 5])
def test_a_case_is_read_as_it_was_written(profile: str, seed: int) -> None:
    case = generate(seed, profile)
    case.feeds[1] |= {"text": np.array([["ä", ""]], object), "list": [np.ones(2)]}
    line = json.dumps({"seed": seed, "profile": profile, "case": case_as_json(case)})
    again = case_of_json(json.loads(line))
    assert (again.seed, again.profile) == (seed, profile)
    assert again.model == case.model
    assert again.noise == case.noise
    for stored, feeds in zip(again.feeds, case.feeds, strict=True):
        assert list(stored) == list(feeds)
        for name, value in feeds.items():
            np.testing.assert_array_equal(stored[name], value)
    for stored_run, run in zip(again.pieces, case.pieces, strict=True):
        for stored_value, value in zip(stored_run, run, strict=True):
            np.testing.assert_equal(stored_value, value)
