"""Progress bars, in the form that users of tqdm know: on standard error, one line that is written over.

On a terminal the bar is as wide as the terminal; elsewhere (a file, a pipe) only the finished line is written.
"""
from __future__ import annotations
import os
import sys
import time

TYPE_CHECKING = False  # typing is loaded only for type checkers
if TYPE_CHECKING:
  from collections.abc import Iterable, Iterator
  from types import TracebackType
  from typing import Generic, TypeVar
  T = TypeVar("T")
else:
  T = None
  class Generic:
    def __class_getitem__(cls, item): return cls

_EIGHTHS = " ▏▎▍▌▋▊▉"
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")

def _clock(seconds: float) -> str:
  """03:25, or 1:03:25 from an hour on."""
  minutes, s = divmod(int(seconds), 60)
  hours, m = divmod(minutes, 60)
  return f"{hours}:{m:02d}:{s:02d}" if hours else f"{m:02d}:{s:02d}"

def _scaled(x: float) -> str:
  """Three digits and a prefix: 1.23k, 12.3M, 123G."""
  for prefix in _PREFIXES:
    if abs(x) < 999.5: break
    x /= 1000
  if abs(x) < 9.995: return f"{x:.2f}{prefix}"
  return f"{x:.1f}{prefix}" if abs(x) < 99.95 else f"{x:.0f}{prefix}"

class tqdm(Generic[T]):
  """Wrap an iterable, or count by hand with `update(n)`.

  total: how many there will be (default: len(iterable)); rate: the most redraws a second; unit_scale: 1.5k instead of
  1500.
  """
  def __init__(self, iterable: Iterable[T] | None = None, desc: str = "", disable: bool = False, unit: str = "it",
               unit_scale: bool = False,
               total: int | None = None, rate: int = 100) -> None:
    self.iterable, self.disable, self.unit, self.unit_scale, self.rate = iterable, disable, unit, unit_scale, rate
    self.total = total if total is not None or iterable is None else getattr(iterable, "__len__", lambda: None)()
    self.n = 0
    self._start = time.perf_counter()
    self._next_draw = 0.0
    self._closed = False
    self.set_description(desc)
    self.update(0)

  def __iter__(self) -> Iterator[T]:
    assert self.iterable is not None, "a bar without an iterable is moved by update()"
    try:
      for item in self.iterable:
        yield item
        self.update(1)
    finally: self.close()

  def __enter__(self) -> tqdm[T]: return self
  def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
               traceback: TracebackType | None) -> None:
    self.close()

  def set_description(self, desc: str) -> None:
    """The text before the bar."""
    self.desc = f"{desc}: " if desc else ""

  def update(self, n: int = 1, close: bool = False) -> None:
    """Count n more, and draw if the last drawing is old enough. close: draw the last line."""
    self.n += n
    if self.disable or self._closed: return
    now = time.perf_counter()
    if close: self._closed = True
    elif now < self._next_draw or not self._live(): return
    self._next_draw = now + 1 / self.rate
    start = "\r" if self._live() else ""
    if start and not self.total: start += "\033[K"  # without a bar the line may become shorter
    sys.stderr.write(start + self._line(now - self._start) + ("\n" if close else ""))
    sys.stderr.flush()

  def close(self) -> None: self.update(0, close=True)

  @staticmethod
  def write(s: str) -> None:
    """Print a line above the bar."""
    sys.stderr.write(f"\r\033[K{s}\n" if tqdm._live() else f"{s}\n")
    sys.stderr.flush()

  @staticmethod
  def _live() -> bool: return sys.stderr.isatty()

  def _line(self, elapsed: float) -> str:
    done = _scaled(self.n) if self.unit_scale else str(self.n)
    speed = self.n / elapsed if self.n and elapsed > 0 else 0.0
    if not speed: rate = f"?{self.unit}/s"
    elif self.unit_scale: rate = f"{_scaled(speed)}{self.unit}/s"
    elif speed < 1: rate = f"{1 / speed:5.2f}s/{self.unit}"
    else: rate = f"{speed:5.2f}{self.unit}/s"
    if not self.total: return f"{self.desc}{done}{self.unit} [{_clock(elapsed)}, {rate}]"
    left = _clock((self.total - self.n) / speed) if speed else "?"
    before = f"{self.desc}{100 * self.n / self.total:3.0f}%|"
    after = f"| {done}/{_scaled(self.total) if self.unit_scale else self.total} [{_clock(elapsed)}<{left}, {rate}]"
    try: columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError, AttributeError): columns = 80  # no terminal, or a replaced sys.stderr
    return before + self._bar(max(10, columns - len(before) - len(after) - 1)) + after

  def _bar(self, width: int) -> str:
    eighths = int(min(1.0, self.n / (self.total or 1)) * width * 8)
    full, part = divmod(eighths, 8)
    return "█" * full + (_EIGHTHS[part] + " " * (width - full - 1) if full < width else "")

class trange(tqdm[int]):
  """tqdm(range(n))."""
  def __init__(self, n: int, desc: str = "", disable: bool = False, unit: str = "it", unit_scale: bool = False,
               total: int | None = None,
               rate: int = 100) -> None:
    super().__init__(range(n), desc, disable, unit, unit_scale, total, rate)
