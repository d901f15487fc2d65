"""Time each kernel of a program, and compare it with the rate of the memory.

    with KernelTimes() as times:
      for _ in range(20): step()
    print("\\n".join(times.table(bytes_per_second)))

Each launch is timed alone, as VIZ=1 does. So a program runs a little slower than without. A device that only tells when
all launches of a replay were done gives no times (`untimed` counts its launches).
"""
from __future__ import annotations
from typing import Any

from tinyhw import trace
from tinyhw.engine.run.realize import Step
from tinyhw.engine.run.show import amount, duration, number
from tinyhw.named_tuple import NamedTuple

HEADING = f"{'share':>7s} {'launches':>9s} {'each':>10s} {'memory':>11s} {'of its rate':>12s}   kernel"

class KernelTime(NamedTuple):
  """All launches of a kernel. bytes: that they move by the estimate of DEBUG=2."""
  name: str
  launches: int
  seconds: float
  bytes: float

  def lost(self, bytes_per_second: float) -> float:
    """Return the seconds that a memory of this rate does not explain."""
    return self.seconds - self.bytes / bytes_per_second

class KernelTimes:
  """A recorder (trace.Recorder) of the times of kernels, while it is entered. It takes the place of VIZ's and
  PROFILE's."""
  def __init__(self) -> None:
    self._launches: dict[tuple[str, int], list[tuple[float, float]]] = {}    # seconds and bytes of each
    self.untimed = 0
    self._outer: trace.Recorder | None = None

  def __enter__(self) -> KernelTimes:
    self._outer, trace.recorder = trace.recorder, self
    return self

  def __exit__(self, *_: object) -> None: trace.recorder = self._outer

  @property
  def kernels(self) -> list[KernelTime]:
    """The kernels, the one with the longest time first."""
    found = [KernelTime(name, len(all_), sum(s for s, _ in all_), sum(b for _, b in all_))
             for (name, _), all_ in self._launches.items()]
    return sorted(found, key=lambda k: -k.seconds)

  @property
  def seconds(self) -> float: return sum(k.seconds for k in self.kernels)

  def table(self, bytes_per_second: float, most: int = 30) -> list[str]:
    """Return lines for the slowest kernels, and one that names the kernel that loses most time."""
    kernels, whole = self.kernels, self.seconds
    if not kernels: return ["no kernel was timed alone"]
    lines = [HEADING]
    for k in kernels[:most]:
      rate = k.bytes / k.seconds
      lines.append(f"{k.seconds / whole:7.1%} {k.launches:9d} {duration(k.seconds / k.launches)} {amount(rate, 'B/s')} "
                   f"{rate / bytes_per_second:12.0%}   {k.name}")
    if len(kernels) > most: lines.append(f"{len(kernels) - most} more")
    worst = max(kernels, key=lambda k: k.lost(bytes_per_second))
    more = max(worst.lost(bytes_per_second), 0) / whole
    lines.append(f"slowest: {worst.name}, {more:.1%} of the time beyond what the "
                 f"memory's rate explains")
    return lines

  # ***** what a Recorder is told *****

  def times(self) -> bool: return True

  def launched(self, step: Step, start_ns: int, end_ns: int) -> None:
    runner = step.runner
    if runner is None: return
    moved = number(runner.bytes_moved, runner.variables, step.variables)
    self._launches.setdefault((runner.name, id(runner)), []).append(((end_ns - start_ns) / 1e9, moved))

  def together(self, steps: list[Any], start_ns: int, end_ns: int) -> None: self.untimed += len(steps)

  def _ignore(self, *_: Any, **__: Any) -> None: pass

  begin = passed = rewrite = became = done = loaded = ran = replayed = memory = moved = _ignore
