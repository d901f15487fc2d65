"""State of the engine that each thread has for itself."""
from __future__ import annotations
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING
if TYPE_CHECKING:
  from tinyhw.engine.memory.buffers import Storage
  from tinyhw.engine.run.realize import Capture
  from tinyhw.uop.ops import UOp

class Thread(threading.local):
  """State of one thread; each field may be None.

  capture: receives every step that this thread runs. stored: called with data that is copied from the host. kernels:
  receives every kernel that this thread runs, as an expression.
  """
  capture: Capture | None = None
  kernels: list[UOp] | None = None
  stored: Callable[[Storage, bytes], None] | None = None
  # The name of the function that `tinyhw.function` runs. Inside of it nothing is computed.
  traced: str | None = None

this_thread = Thread()
