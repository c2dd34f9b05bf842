"""Every built page in a browser, wide, on a phone, in the dark and in print: pictures, and faults.

python scripts/look.py [part of a page's name]

It takes Chromium or Chrome, if one is installed. A page fails if something on it is cut off at the
side, or its scripts complain. Pictures are in _build/look.
"""

import asyncio
import base64
import itertools
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.request import urlopen

from chapters import BUILD
from tornado.websocket import websocket_connect

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
VIEWS = {
    "wide": (1300, "light", "screen"),
    "phone": (390, "light", "screen"),
    "dark": (1300, "dark", "screen"),
    "print": (700, "light", "print"),
}
TALLEST = 16_000
"""Points of a picture; what is below is not in it."""
FAULTS = Path(__file__).with_suffix(".js").read_text()


class Browser:
    """A browser without a window, spoken to by its debugging protocol."""

    def __init__(self, socket):
        self._socket, self._ids, self.complaints = socket, itertools.count(1), []

    async def call(self, method: str, **params):
        """One command; what the page complains about on the way is noted."""
        number = next(self._ids)
        command = {"id": number, "method": method, "params": params}
        await self._socket.write_message(json.dumps(command))
        return await self.until("id", number)

    async def until(self, key: str, value):
        """The result of the next message of this kind."""
        message: dict = {}
        while message.get(key) != value:
            message = json.loads(await asyncio.wait_for(self._socket.read_message(), 60))
            self._note(message)
        return message.get("result", {})

    def _note(self, message):
        entry = message.get("params", {}).get("entry", {})
        if message.get("method") == "Log.entryAdded" and entry.get("level") == "error":
            self.complaints.append(entry.get("text", ""))
        if message.get("method") == "Runtime.exceptionThrown":
            details = message["params"]["exceptionDetails"]
            told = details.get("exception", {}).get("description", details["text"])
            self.complaints.append(told.splitlines()[0])


async def seen(browser: Browser, page: Path, view: str) -> list[str]:
    """Show a page in a view, take its picture, and tell its faults."""
    width, scheme, media = VIEWS[view]
    browser.complaints.clear()
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    await browser.call("Emulation.setDeviceMetricsOverride", **screen)
    dark = [{"name": "prefers-color-scheme", "value": scheme}]
    await browser.call("Emulation.setEmulatedMedia", media=media, features=dark)
    await browser.call("Page.navigate", url=page.as_uri())
    await browser.until("method", "Page.loadEventFired")
    await asyncio.sleep(1.5)  # formulas are set by a script
    found = await browser.call("Runtime.evaluate", expression=FAULTS, returnByValue=True)
    size = await browser.call("Page.getLayoutMetrics")
    screen["height"] = int(min(TALLEST, size["cssContentSize"]["height"]))
    await browser.call("Emulation.setDeviceMetricsOverride", **screen)
    await asyncio.sleep(0.5)
    shot = await browser.call("Page.captureScreenshot")
    picture = BUILD / "look" / view / f"{page.stem}.png"
    picture.parent.mkdir(parents=True, exist_ok=True)
    picture.write_bytes(base64.b64decode(shot["data"]))
    return [*found.get("result", {}).get("value", []), *browser.complaints]


async def look(port: int, pages: list[Path]) -> int:
    """All pages in all views; how many have faults."""
    tabs = json.load(urlopen(f"http://127.0.0.1:{port}/json"))
    url = next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page")
    browser = Browser(await websocket_connect(url, max_message_size=200_000_000))
    for domain in ("Page", "Log", "Runtime"):
        await browser.call(f"{domain}.enable")
    failed = 0
    for page, view in itertools.product(pages, VIEWS):
        faults = await seen(browser, page, view)
        failed += bool(faults)
        print(f"  {page.stem}, {view}: {'; '.join(faults) or 'ok'}", flush=True)
    return failed


def main(part: str = ""):
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit(f"no browser is installed; this takes one of {', '.join(BROWSERS)}")
    folders = (BUILD / "html", BUILD / "html" / "book", BUILD / "html" / "notebooks")
    pages = [p for of in folders for p in sorted(of.glob("*.html")) if part in p.stem]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]
        options.append("--allow-file-access-from-files")  # fonts, where pages are files
        command = [browser, *options, f"--user-data-dir={profile}", "about:blank"]
        running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            told = (re.search(r"ws://[^:]+:(\d+)/", line) for line in running.stderr)
            port = int(next(filter(None, told))[1])
            failed = asyncio.run(look(port, pages))
        finally:
            running.kill()
            running.wait()
    print(f"The pictures: {BUILD / 'look'}")
    if failed:
        sys.exit(f"{failed} views have faults")


if __name__ == "__main__":
    main(*sys.argv[1:])
