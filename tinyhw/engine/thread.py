"""What each thread has of its own while the engine works for it."""
from __future__ import annotations
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING
if TYPE_CHECKING:
  from tinyhw.engine.memory.buffers import Storage
  from tinyhw.engine.run.realize import Capture
  from tinyhw.uop.ops import UOp

class Thread(threading.local):
  """capture: the capture that gets every step that this thread runs, or None. stored: is told of data that is copied
  from the host, or None.
  kernels: gets every kernel that this thread runs, as an expression, or None."""
  capture: Capture | None = None
  kernels: list[UOp] | None = None
  stored: Callable[[Storage, bytes], None] | None = None
  traced: str | None = None     # the name of the function that `tinyhw.function` runs: inside of it nothing is computed

this_thread = Thread()
