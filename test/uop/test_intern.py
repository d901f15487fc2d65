"""The cache of nodes: entries end with their nodes, also where threads meet."""
from __future__ import annotations
import gc
import threading
from typing import Any

import pytest

from tinyhw.dtype import dtypes
from tinyhw.uop import intern
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp, Variable

a = Variable("a", 0, 10)

def test_nodes_that_nobody_holds_are_forgotten() -> None:
  before = len(intern.CACHE)
  u = UOp.variable("only here", 0, 3) * 12345 + 678
  assert len(intern.CACHE) > before
  del u
  gc.collect()
  assert len(intern.CACHE) <= before

def test_threads_make_one_node() -> None:
  made: list[list[UOp]] = []
  barrier = threading.Barrier(4)
  def make() -> None:
    barrier.wait()
    made.append([a * i + i for i in range(2000)])
  threads = [threading.Thread(target=make) for _ in range(4)]
  for t in threads: t.start()
  for t in threads: t.join()
  assert all(x is y for other in made[1:] for x, y in zip(made[0], other))

# ***** the end of a node while another thread makes an equal one *****

class Ended:
  """An entry of the cache whose node has ended, and that is not removed yet."""
  def __init__(self, key: tuple[Any, ...]):
    node = UOp(*key)
    self.reference = intern.CACHE[key]
    self.key = key
    other = UOp(Ops.CONST, dtypes.int32, (), 987654321)
    intern.CACHE[key] = self.dead = intern.NodeReference(other, lambda reference: None)
    del other
    self.dead.key = key
    self.reference.key = None
    del node
    assert self.dead() is None

KEY = (Ops.CONST, dtypes.int32, (), 192837465, None)

def test_a_node_that_another_thread_is_about_to_forget_is_waited_for() -> None:
  ended = Ended(KEY)
  threading.Timer(0.05, lambda: intern.forget(ended.dead)).start()
  u = UOp(*KEY)
  assert UOp(*KEY) is u and intern.CACHE[KEY]() is u and ended.dead.key == KEY   # removed, not replaced

def test_a_node_that_this_thread_has_to_forget_later_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(intern, "_LONGEST_END", 0.0)
  ended = Ended(KEY)
  u = UOp(*KEY)
  intern.forget(ended.dead)
  assert UOp(*KEY) is u and intern.CACHE[KEY]() is u and ended.dead.key is None
