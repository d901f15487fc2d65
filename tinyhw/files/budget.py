"""How much memory the reading of a file may make: one number of bytes, from which everything that makes memory draws.

A file makes memory in many ways: text is unpacked, a pickle names one object a thousand times, ten bytes of a header
become a Tensor. A limit for each of them is passed by the next way. So each reader has one `Budget`, of FREE bytes and
TIMES the file's size, and takes from it what it is about to make, before it makes it. Costs are upper bounds of what
CPython allocates; test/test_budget.py compares them with what it does.

What a header says of a tensor's shape is not made here: such a tensor is lazy, and takes memory when its owner computes
it.
"""
from __future__ import annotations
import json

from tinyhw.config import READ_LIMIT
from tinyhw.errors import BudgetError

TYPE_CHECKING = False  # typing is loaded only for type checkers
if TYPE_CHECKING:
  from collections.abc import Callable, Sequence
  from types import TracebackType
  from typing import Any

FREE = 64 << 20   # bytes that any file may make
TIMES = 20        # and as many for each byte of it

# Bytes of what readers make, at most
TENSOR = 4096     # a lazy Tensor over a part of a file
AXIS = 1024       # and for each axis that has strides of its own
ENTRY = 512       # an entry of a directory: its name, its numbers, a place in a dict
SLOT = 32         # a place in a list while it grows

class Budget:
  """What is left of `limit` bytes; without one, of READ_LIMIT, else of the rule for a file of `size` bytes. name: of
  the file, for the error."""
  __slots__ = ("name", "size", "most", "left", "more")

  def __init__(self, name: str, size: int, limit: int | None = None) -> None:
    self.name, self.size = name, size
    self.most: int = limit if limit is not None else READ_LIMIT.value or FREE + TIMES * size
    self.left = self.most
    self.more: set[str] = set()

  def take(self, count: int) -> None:
    """Draw bytes. Raises BudgetError where so many are not left."""
    self.left -= count
    if self.left < 0:
      raise BudgetError(f"reading {self.name}, which has {self.size} bytes, would make more than {self.most} bytes of "
                        f"memory; if you "
                        "trust it, allow more: with Context(READ_LIMIT=bytes)")

  def add(self, path: str, size: int) -> None:
    """Count the size of another file that belongs to this one, once."""
    if path in self.more: return
    self.more.add(path)
    self.size += size
    self.most += TIMES * size
    self.left += TIMES * size

  def give(self, count: int) -> None:
    """Put bytes back that are free again."""
    self.left += count

  def borrowed(self) -> Borrowed:
    """`with budget.borrowed():` what is taken inside is given back: for memory that is free again afterwards."""
    return Borrowed(self)

class Borrowed:
  """See `Budget.borrowed`."""
  __slots__ = ("budget", "left")
  def __init__(self, budget: Budget) -> None: self.budget = budget
  def __enter__(self) -> None: self.left = self.budget.left
  def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
               traceback: TracebackType | None) -> None:
    self.budget.left = self.left

# ***** JSON *****

# What a sign announces, in bytes: containers, an entry of a dict while it grows with its pair, an item of a list with a
# number, a string's head
_OF_SIGNS = {b"{": 400, b"[": 120, b":": 320, b",": 64, b'"': 40}

def json_cost(text: bytes) -> int:
  """The most memory that a text of JSON can become, from the signs in it. Signs inside of strings count, too."""
  wide = not text.isascii() or b"\\u" in text   # then a string may take four bytes for each character
  return sum(cost * text.count(sign) for sign, cost in _OF_SIGNS.items()) + len(text) * (9 if wide else 3)

def parse_json(text: bytes, budget: Budget, unique: bool = False) -> Any:
  """What a text of JSON says. unique: no object names a key twice.

  Raises ValueError for what is no JSON, BudgetError before it makes too much.
  """
  budget.take(json_cost(text))
  hook: Callable[[Sequence[tuple[str, Any]]], dict[str, Any]] | None = _unique_keys if unique else None
  try: return json.loads(text.decode(), object_pairs_hook=hook, parse_constant=_no_number)
  except RecursionError: raise ValueError("it nests too deep") from None

def _no_number(name: str) -> Any: raise ValueError(f"{name} is no number of JSON")

def _unique_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
  found = dict(pairs)
  if len(found) != len(pairs):
    raise ValueError(f"a name stands twice among {', '.join(sorted(key for key, _ in pairs)[:8])}")
  return found
