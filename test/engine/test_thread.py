"""The state that a thread has for itself."""
from __future__ import annotations
import threading
from typing import Any

from tinyhw.engine.thread import this_thread

def test_each_thread_has_its_own() -> None:
  seen: list[Any] = []
  this_thread.traced = "here"
  try:
    thread = threading.Thread(target=lambda: seen.append((this_thread.traced, this_thread.capture, this_thread.kernels,
                                                          this_thread.stored)))
    thread.start()
    thread.join()
  finally: this_thread.traced = None
  assert seen == [(None, None, None, None)]
