"""The service answers many callers at once, and refuses what is no digit."""

import asyncio
import threading
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi")
httpx: Any = pytest.importorskip("httpx")

BLANK = {"pixels": [[0.5] * 8] * 8}


async def post(app: Any, *bodies: Any) -> list[Any]:
    """Return the responses to concurrent requests."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://test") as client,
    ):
        calls = [client.post("/classify", json=body) for body in bodies]
        return list(await asyncio.wait_for(asyncio.gather(*calls), 60))


@pytest.mark.parametrize("example", ["service"], indirect=True)
def test_concurrent_requests_share_batches(example: Any) -> None:
    app = example.make_app(example.load_model())
    answers = asyncio.run(example.call_itself(app, 450))
    assert sum(answer["right"] for answer in answers) == 446
    assert np.mean([answer["batch"] for answer in answers]) > 4
    assert max(answer["batch"] for answer in answers) <= 32


@pytest.mark.parametrize("example", ["service"], indirect=True)
def test_wrong_requests_are_refused(example: Any) -> None:
    app = example.make_app(example.load_model())
    bodies = [{"pixels": [[0.5] * 8] * 7}, {"pixels": [[2.0] * 8] * 8}, {}, BLANK]
    responses = asyncio.run(post(app, *bodies))
    assert [response.status_code for response in responses] == [422, 422, 422, 200]
    assert "pixels" in responses[0].text


@pytest.mark.parametrize("example", ["service"], indirect=True)
def test_an_error_of_the_model_reaches_its_callers_alone(example: Any) -> None:
    failing = threading.Event()
    failing.set()

    def model(images: Any) -> Any:
        if failing.is_set():
            failing.clear()
            raise ValueError("no memory")
        return np.eye(10, dtype=np.float32)[: len(images)]

    async def twice() -> list[Any]:
        app = example.make_app(model)
        return [await post(app, BLANK), await post(app, BLANK)]

    first, second = asyncio.run(twice())
    assert first[0].status_code == 500
    assert second[0].json() == {"digit": 0, "probability": 1.0, "batch": 1}
