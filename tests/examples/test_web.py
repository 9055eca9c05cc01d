"""The web page: requests to its server, and a browser that drops a picture on it."""

import http.client
import io
import json
import os
import shutil
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.test_house import ROOT

Image: Any = pytest.importorskip("PIL.Image")

BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")


@pytest.fixture
def address(example: Any) -> Iterator[str]:
    """Return where the example is served."""
    example.Handler.model = staticmethod(example.load_model())
    with ThreadingHTTPServer(("127.0.0.1", 0), example.Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def digits() -> tuple[Any, Any]:
    """Return images float32[N, 8, 8] and labels int64[N] of the test set."""
    with np.load(ROOT / "models" / "digits" / "digits_test.npz") as arrays:
        return arrays["images"][:, 0], arrays["labels"]


def picture(image: Any, form: str = "PNG", *, dark: bool = False) -> bytes:
    """Return a file of a digit that is somewhere on a large page."""
    values = (255 * (image if dark else 1 - image)).astype(np.uint8)
    page = Image.new("L", (310, 260), 0 if dark else 255)
    page.paste(Image.fromarray(values).resize((160, 160), Image.Resampling.BICUBIC))
    file = io.BytesIO()
    page.save(file, form)
    return file.getvalue()


def classify(address: str, data: bytes) -> Any:
    """Return the server's answer, or what it says on an error."""
    try:
        request = urllib.request.Request(f"{address}/classify", data)
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        return {"status": error.code, **json.load(error)}


@pytest.mark.parametrize("example", ["web"], indirect=True)
@pytest.mark.parametrize(("form", "dark"), [("PNG", False), ("JPEG", True)])
def test_pictures_of_digits_are_named(address: str, form: str, dark: bool) -> None:
    images, labels = digits()
    named, alike = 0, []
    for image, label in zip(images[:40], labels, strict=False):
        answer = classify(address, picture(image, form, dark=dark))
        assert sum(answer["probabilities"]) == pytest.approx(1, abs=1e-5)
        named += int(np.argmax(answer["probabilities"]) == label)
        alike.append(np.corrcoef(np.ravel(answer["pixels"]), image.ravel())[0, 1])
    assert named >= 37
    assert np.mean(alike) > 0.7


@pytest.mark.parametrize("example", ["web"], indirect=True)
def test_what_is_no_picture_of_a_digit_is_an_error_of_the_request(
    address: str,
) -> None:
    blank = io.BytesIO()
    Image.new("RGB", (50, 50), "red").save(blank, "PNG")
    text = classify(address, b"text")
    assert text["status"] == 400
    assert "expected a picture" in text["error"]
    assert "of one color" in classify(address, blank.getvalue())["error"]
    cut = picture(digits()[0][0])[:200]
    assert classify(address, cut)["status"] == 400
    connection = http.client.HTTPConnection(address.removeprefix("http://"))
    connection.request("POST", "/classify", headers={"Content-Length": "9000000"})
    assert connection.getresponse().status == 413
    connection.close()
    answer = classify(address, picture(digits()[0][1]))
    assert "probabilities" in answer  # the server goes on


@pytest.mark.skipif(not (BROWSER and DRIVER), reason="no browser: Chromium")
@pytest.mark.parametrize("example", ["web"], indirect=True)
def test_a_browser_shows_the_answer(address: str, tmp_path: Path) -> None:
    webdriver = pytest.importorskip("selenium.webdriver")
    from selenium.webdriver.support.ui import WebDriverWait

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    switches = ("headless", "no-sandbox", "disable-background-networking")
    for switch in (*switches, "disable-component-update", "window-size=960,680"):
        options.add_argument(f"--{switch}")
    service = webdriver.ChromeService(executable_path=DRIVER)
    browser = webdriver.Chrome(options=options, service=service)
    try:
        browser.get(address)
        file = tmp_path / "digit.png"
        images, labels = digits()
        file.write_bytes(picture(images[2]))
        browser.find_element("id", "file").send_keys(str(file))
        WebDriverWait(browser, 20).until(lambda b: _answer(b) == str(labels[2]))
        best = browser.find_element("css selector", "li.best").text
        assert best.startswith(str(labels[2]))
        shot = os.environ.get("BURN_SCREENSHOT")
        if shot:
            browser.save_screenshot(shot)
        _draw(browser)
        WebDriverWait(browser, 20).until(lambda b: _answer(b) == "1")
        text = tmp_path / "text.png"
        text.write_bytes(b"text")
        browser.find_element("id", "file").send_keys(str(text))
        message = browser.find_element("id", "message")
        WebDriverWait(browser, 20).until(lambda _: "expected a picture" in message.text)
    finally:
        browser.quit()


def _answer(browser: Any) -> Any:
    return browser.execute_script("return document.body.dataset.answer")


def _draw(browser: Any) -> None:
    """Draw a stroke downwards, as with a mouse."""
    from selenium.webdriver import ActionChains

    browser.find_element("id", "clear").click()
    pad = browser.find_element("id", "pad")
    pen = ActionChains(browser).move_to_element_with_offset(pad, 0, -100)
    pen.click_and_hold().move_by_offset(0, 100).move_by_offset(0, 100).release()
    pen.perform()
