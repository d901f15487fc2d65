"""Bound the memory that reading a file may take: one budget of bytes from which all allocations draw.

A file takes memory in many ways: text is unpacked, a pickle names one object a thousand times, ten bytes of a header
become a Tensor. With a separate limit for each way, files would use the next one. So each reader has one `Budget` of
FREE bytes and TIMES the file's size. It draws from the budget before it allocates. Costs are upper bounds of CPython's
allocations, and test/test_budget.py checks them.

The shape of a tensor in a header costs nothing here: such a tensor is lazy, and takes memory when its owner computes
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

FREE = 64 << 20   # bytes that any file may take
TIMES = 20        # further bytes for each byte of the file

# Upper bounds in bytes of objects that readers make.
TENSOR = 4096     # a lazy Tensor over a part of a file
AXIS = 1024       # for each axis that has strides of its own
ENTRY = 512       # an entry of a directory: its name, its numbers, a slot in a dict
SLOT = 32         # a slot in a growing list

class Budget:
  """The rest of `limit` bytes. The default limit is READ_LIMIT, else the rule for a file of `size` bytes. name: of the
  file, for the error."""
  __slots__ = ("name", "size", "most", "left", "more")

  def __init__(self, name: str, size: int, limit: int | None = None) -> None:
    self.name, self.size = name, size
    self.most: int = limit if limit is not None else READ_LIMIT.value or FREE + TIMES * size
    self.left = self.most
    self.more: set[str] = set()

  def take(self, count: int) -> None:
    """Draw bytes. Raises BudgetError if fewer are left."""
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
    """Give back bytes that are free again."""
    self.left += count

  def borrowed(self) -> Borrowed:
    """`with budget.borrowed():` returns bytes drawn inside at the end, for temporary memory."""
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

# Bytes for each sign: containers, a pair in a growing dict, a number in a list, a string's head.
_OF_SIGNS = {b"{": 400, b"[": 120, b":": 320, b",": 64, b'"': 40}

def json_cost(text: bytes) -> int:
  """Return an upper bound of the memory of a JSON text, from the signs in it. Signs inside of strings count, too."""
  wide = not text.isascii() or b"\\u" in text   # then a string may take four bytes for each character
  return sum(cost * text.count(sign) for sign, cost in _OF_SIGNS.items()) + len(text) * (9 if wide else 3)

def parse_json(text: bytes, budget: Budget, unique: bool = False) -> Any:
  """Parse a JSON text. unique: no object names a key twice.

  Raises ValueError for invalid JSON, BudgetError before it takes too much memory.
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
