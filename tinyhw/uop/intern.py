"""The cache of nodes: one `UOp` for each key of operation, type, sources, argument and tag.

The cache holds weak references, so it does not keep nodes alive. `UOp.__new__` (ops.py) fills it. The end of a node
removes its entry.

The cache is a plain dict of weak references that carry their keys. A metaclass call, WeakValueDictionary and `__del__`
were all slower.
"""
from __future__ import annotations
import threading
import time
from typing import TYPE_CHECKING, Any
import weakref

from tinyhw.threads import kept_in_forks
if TYPE_CHECKING: from tinyhw.uop.ops import UOp  # noqa: F401  # in a string below

class NodeReference(weakref.ref["UOp"]):
  """A weak reference to a node. It knows its key in the cache, to remove its entry.

  The key is None where another reference has replaced it in the cache.
  """
  __slots__ = ("key",)
  key: tuple[Any, ...] | None

CACHE: dict[tuple[Any, ...], NodeReference] = {}

_ending = kept_in_forks(threading.RLock())
_LONGEST_END = 1.0      # seconds that another thread may take between the end of a node and `forget`

def forget(reference: NodeReference) -> None:
  """Remove the entry of a node that has ended. The weak reference calls this."""
  if reference.key is not None: CACHE.pop(reference.key, None)

def replace_ended(key: tuple[Any, ...], first: NodeReference, reference: NodeReference) -> bool:
  """Wait until the dead entry `first` of a key is removed, then return False.

  If nobody removes it in time, this thread itself must do so, further down its stack. Then put `reference` in its place
  and return True. To replace the entry while another thread is about to remove it would leave two equal nodes.
  """
  end = time.monotonic() + _LONGEST_END
  while CACHE.get(key) is first:
    if time.monotonic() > end:
      with _ending:
        if CACHE.get(key) is not first: return False
        first.key = None
        CACHE[key] = reference
        return True
    time.sleep(0)
  return False
