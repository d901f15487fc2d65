"""BEAM=n: find the fastest opts for a kernel. Candidates are timed on the device that will run it, on separate buffers.

The search itself is codegen/search.py. A winner is kept in memory, and on disk by the digest of the kernel, the
architecture and the compiler. So a kernel is searched once for each machine's cache. IGNORE_BEAM_CACHE=1 searches
again. A candidate that the device or its compiler refuses is skipped. A fault of tinyhw is an error (faults.py).
"""
from __future__ import annotations
import math
import sys
import time
from typing import Any

from tinyhw.config import BEAM, DEBUG, IGNORE_BEAM_CACHE, Context
from tinyhw.data_class import replace
from tinyhw.device import Buffer, Device, Launch
from tinyhw.engine.run.compile import (
  Runner, capabilities_of, compile_kernel, disk_key, kernel_name, mode, value_of, values_of)
from tinyhw.errors import OutOfMemory, TinyError
from tinyhw.files.storage import diskcache_get, diskcache_put
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import KernelInfo, UOp

RUNS = 4
HOPELESS = 3.0    # a first run that takes this many times the best time is the last

_tuned: dict[tuple[str, UOp, tuple[int, ...]], UOp] = {}

def tuned(device: str, sink: UOp) -> UOp:
  """Return the kernel with the fastest opts on a device; unchanged if it has opts already."""
  info = sink.arg if isinstance(sink.arg, KernelInfo) else KernelInfo()
  if info.opts is not None: return sink
  key = (device, sink, mode())
  found = _tuned.get(key)
  if found is None:
    opts = _stored(device, sink)
    found = _tuned.setdefault(key, sink.replace(arg=replace(info, opts=opts)) if opts else sink)
  return found

def _stored(device: str, sink: UOp) -> tuple[Any, ...]:
  """Return the winner from disk, or from a search."""
  arch = Device[device].arch
  key = disk_key(sink, arch, device)
  kept = None if IGNORE_BEAM_CACHE or key is None else diskcache_get("beam", key)
  if isinstance(kept, tuple): return kept
  from tinyhw.codegen.search import search  # hidden: codegen is loaded when something is compiled
  name = kernel_name(sink)
  try: trial = Trial(device, sink)
  except OutOfMemory: return ()  # no room for separate buffers: use the heuristic's choice
  say = (lambda line: _say(f"beam {name} {line}")) if DEBUG >= 3 else None
  opts = search(sink, capabilities_of(arch, device), trial.seconds, int(BEAM), say)
  if key is not None: diskcache_put("beam", key, opts)
  return opts

def _say(line: str) -> None: sys.stdout.write(line + "\n")

class Trial:
  """Times candidates for one kernel. Its buffers hold zeros, so that indices read from them are valid."""
  def __init__(self, device: str, sink: UOp):
    self.device, self.sink = device, sink
    self.best = math.inf
    params = sorted({u for u in sink.toposort() if u.op is Ops.PARAM}, key=lambda u: u.arg[0])
    self.buffers: dict[int, Buffer] = {}
    for p in params:
      buffer = self.buffers[p.arg[0]] = Buffer(device, p.arg[1], p.dtype)
      buffer.copyin(memoryview(bytes(buffer.nbytes)))
    self.variables = {v.arg[0]: int(v.vmax) for v in sink.toposort() if v.op is Ops.DEFINE_VAR}

  def seconds(self, opts: tuple[Any, ...]) -> float:
    """Return the shortest of a few runs; infinity if the candidate does not compile or run."""
    info = self.sink.arg if isinstance(self.sink.arg, KernelInfo) else KernelInfo()
    opened = Device[self.device]
    candidate = self.sink.replace(arg=replace(info, opts=opts))
    try:
      with Context(DEBUG=0, CACHE=0, VIZ=0, PROFILE=0): made = compile_kernel(candidate, opened.arch, self.device)
      program = opened.load(made.code)
      found = self._timed(Runner(program, made.code.name, *made[1:], self.device))
    except TinyError as error:
      if DEBUG >= 4: _say(f"beam skips {opts}: {type(error).__name__}: {error}")
      return math.inf
    self.best = min(self.best, found)
    return found

  def _timed(self, runner: Runner) -> float:
    opened = Device[self.device]
    buffers = [self.buffers[slot].get_buf() for slot in runner.slots]
    variables = values_of(runner.variables, self.variables)
    launch = Launch(runner.program, buffers, variables, value_of(runner.grid, self.variables), runner.small)
    least = math.inf
    for _ in range(RUNS):
      start = time.perf_counter()
      opened.submit([launch])
      opened.synchronize()
      least = min(least, time.perf_counter() - start)
      if least > self.best * HOPELESS: break
    return least
