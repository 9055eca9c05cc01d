"""Serves a generated network to many callers at once; requests share batches.

    python examples/service/run.py                 # serves on port 8000
    python examples/service/run.py --requests 400  # calls itself, and prints times
    curl localhost:8000/classify -H 'Content-Type: application/json' \\
        -d "{\\"pixels\\": $(python -c 'print([[0.5] * 8] * 8)')}"

It needs FastAPI, uvicorn and, to call itself, httpx. Pages about the service are at
``/docs``. It writes ``generated/`` beside itself.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import httpx
import numpy as np
import uvicorn
from fastapi import FastAPI, HTTPException
from numpy.typing import NDArray
from pydantic import BaseModel, Field

import burn
from burn import ops
from burn_import import ModelGen

HERE = Path(__file__).parent
MODEL = HERE.parents[1] / "models" / "digits" / "digits.onnx"
OUT = HERE / "generated"
sys.path.insert(0, str(HERE))

Array = NDArray[np.float32]
Pixel = Annotated[float, Field(ge=0, le=1)]
Row = Annotated[list[Pixel], Field(min_length=8, max_length=8)]


class Digit(BaseModel):
    """A picture of 8 x 8 pixels, 1 where there is ink."""

    pixels: Annotated[list[Row], Field(min_length=8, max_length=8)]


class Answer(BaseModel):
    """The most likely digit, with its probability and the size of its batch."""

    digit: int
    probability: float
    batch: int


def load_model() -> Callable[[Array], Array]:
    """Return the classifier generated from the ONNX file: images to probabilities."""
    ModelGen().input(str(MODEL)).out_dir(str(OUT)).run_from_script()
    sys.path.insert(0, str(OUT))
    model = import_module(MODEL.stem).Digits.load()
    plan = burn.compile(lambda images: ops.softmax(model(images), axis=-1))
    return lambda images: plan(burn.tensor(images)).numpy()


def make_app(model: Callable[[Array], Array]) -> FastAPI:
    """Return the service of a classifier."""
    batcher = import_module("batching").Batcher(model)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(batcher.run())
        yield
        task.cancel()

    app = FastAPI(title="Digits", lifespan=lifespan)

    @app.post("/classify")
    async def classify(digit: Digit) -> Answer:
        try:
            row, count = await batcher(np.array([digit.pixels], np.float32))
        except asyncio.QueueFull:
            raise HTTPException(503, "too many requests wait; try again") from None
        best = int(row.argmax())
        return Answer(digit=best, probability=float(row[best]), batch=count)

    return app


async def call_itself(app: FastAPI, count: int) -> list[dict[str, Any]]:
    """Return the answers to concurrent requests with images of the test set."""
    with np.load(MODEL.with_name("digits_test.npz")) as data:
        images, labels = data["images"], data["labels"]
    transport = httpx.ASGITransport(app)

    async def one(number: int) -> dict[str, Any]:
        at, start = number % len(images), time.perf_counter()
        body = {"pixels": images[at, 0].tolist()}
        response = await client.post("/classify", json=body)
        answer: dict[str, Any] = response.raise_for_status().json()
        seconds = time.perf_counter() - start
        return answer | {"seconds": seconds, "right": answer["digit"] == labels[at]}

    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://digits") as client,
    ):
        return list(await asyncio.gather(*map(one, range(count))))


def main() -> None:
    """Serve, or call the service and print what came of it."""
    parser = argparse.ArgumentParser(description="Serves a classifier of digits.")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--requests", type=int, help="call itself so many times")
    given = parser.parse_args()
    app = make_app(load_model())
    if given.requests is None:
        uvicorn.run(app, port=given.port)
        return
    start = time.perf_counter()
    answers = asyncio.run(call_itself(app, given.requests))
    seconds = time.perf_counter() - start
    right = sum(answer["right"] for answer in answers)
    mean = np.mean([answer["batch"] for answer in answers])
    print(f"{right} of {len(answers)} right, {len(answers) / seconds:.0f} a second")
    print(f"a request shares its batch with {mean - 1:.1f} others")


if __name__ == "__main__":
    main()
