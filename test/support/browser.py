"""A headless Chromium for tests of pages, driven over the WebDriver protocol of an installed chromedriver, with the
standard library only."""
from __future__ import annotations
import base64
import json
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHROMIUM = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))),
                None)
DRIVER = shutil.which("chromedriver")
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars"]
KEYS = {"ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015", "Escape": "\ue00c",
        "Enter": "\ue007"}
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of an element in answers (W3C WebDriver, 12.2)

class Browser:
  """One window. `close` ends the browser and its driver; also a context manager."""
  def __init__(self, width: int = 1500, height: int = 950, dark: bool = False):
    assert DRIVER is not None and CHROMIUM is not None, "there is no browser here"
    self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    self.process = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
      self.address = f"http://127.0.0.1:{self._port()}"
      arguments = [*FLAGS, f"--user-data-dir={self.profile.name}", f"--window-size={width},{height}",
                   *(["--force-dark-mode"] if dark else [])]
      options = {"goog:chromeOptions": {"binary": CHROMIUM, "args": arguments}, "goog:loggingPrefs": {"browser": "ALL"}}
      opened = self._call("POST", "/session", {"capabilities": {"alwaysMatch": options}})
      self.session = f"/session/{opened['sessionId']}"
    except BaseException:
      self._end()
      raise

  def _port(self) -> int:
    assert self.process.stdout is not None
    for line in self.process.stdout:
      found = re.search(r"on port (\d+)", line)
      if found and int(found[1]): return int(found[1])
    raise RuntimeError("chromedriver did not start")

  def _call(self, method: str, path: str, value: Any = None) -> Any:
    data = None if method != "POST" else json.dumps(value or {}).encode()
    request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"}, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
      with opener.open(request, timeout=60) as answer: return json.load(answer)["value"]
    except urllib.error.HTTPError as error: raise RuntimeError(json.load(error)["value"]["message"]) from None

  def open(self, url: str) -> None: self._call("POST", f"{self.session}/url", {"url": url})

  def run(self, script: str, *arguments: Any) -> Any:
    """Return the value of a function body of JavaScript."""
    return self._call("POST", f"{self.session}/execute/sync", {"script": script, "args": list(arguments)})

  def find(self, selector: str) -> str:
    """An element, by a CSS selector."""
    return str(self._call("POST", f"{self.session}/element", {"using": "css selector", "value": selector})[ELEMENT])

  def click(self, selector: str) -> None: self._call("POST", f"{self.session}/element/{self.find(selector)}/click")

  def press(self, *keys: str) -> None:
    """Press keys one after the other, wherever the focus is."""
    strokes = [{"type": kind, "value": KEYS.get(key, key)} for key in keys for kind in ("keyDown", "keyUp")]
    self._call("POST", f"{self.session}/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": strokes}]})

  def point(self, x: int, y: int, click: bool = False) -> None:
    """Move the mouse to a place of the window, and click."""
    moves: list[dict[str, Any]] = [{"type": "pointerMove", "x": x, "y": y, "duration": 30}]
    if click: moves += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
    self._call("POST", f"{self.session}/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": moves}]})

  def wait(self, script: str, seconds: float = 20.0, *arguments: Any) -> Any:
    """Until a function body of JavaScript returns something true; what it returned."""
    return until(lambda: self.run(script, *arguments), seconds, script)

  def errors(self) -> list[str]:
    """Return the errors on the page's console since the last call."""
    rows = self._call("POST", f"{self.session}/se/log", {"type": "browser"})
    return [row["message"] for row in rows if row["level"] in ("SEVERE", "WARNING")]

  def screenshot(self, path: Path) -> None:
    path.write_bytes(base64.b64decode(self._call("GET", f"{self.session}/screenshot")))

  def _end(self) -> None:
    self.process.terminate()
    try: self.process.wait(10)
    except subprocess.TimeoutExpired: self.process.kill()
    if self.process.stdout is not None: self.process.stdout.close()
    self.process.wait()
    self.profile.cleanup()

  def close(self) -> None:
    try: self._call("DELETE", self.session)
    finally: self._end()

  def __enter__(self) -> Browser: return self
  def __exit__(self, *_: object) -> None: self.close()

def until(condition: Callable[[], Any], seconds: float, what: str) -> Any:
  """Wait until a condition is true, and return its value. Raises TimeoutError."""
  end = time.monotonic() + seconds
  while True:
    found = condition()
    if found: return found
    if time.monotonic() > end: raise TimeoutError(f"after {seconds} s there is no {what}")
    time.sleep(0.05)
