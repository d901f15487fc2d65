"""The steps of `python3 -m tinyhw selftest CPU` before tensors: the processor, pages of code, native threads."""
from __future__ import annotations
import os
from collections.abc import Sequence

from tinyhw.config import ARCH
from tinyhw.device import Device, runtime
from tinyhw.drivers.cpu import CPUDevice, choose_arch, module, next_level, processor, visible_code
from tinyhw.drivers.cpu.memory import CodeArena
from tinyhw.selftest.frame import Absent, Session, Probe, Tools, Wrong

MAPS = "/proc/self/maps"
ROUNDS = 20  # how often the threads are started and stopped

class CPUSession(Session):
  def first(self) -> Sequence[Probe]: return STEPS

def begin(name: str, tools: Tools) -> CPUSession: return CPUSession(name, tools)

def which(s: CPUSession) -> str:
  found = processor(runtime)
  arch = choose_arch(found, ARCH.value)
  words = [f"{found.brand or found.vendor or 'of unknown identity'}: {arch}", next_level(found, arch)]
  return "; ".join(filter(None, words))

def rights(address: int, lines: Sequence[str]) -> str:
  """Return the rights of the mapping that contains an address, by the lines of /proc/self/maps: "r-xp"."""
  for line in lines:
    place, kept = line.split()[:2]
    first, last = (int(number, 16) for number in place.split("-"))
    if first <= address < last: return kept
  raise Wrong(f"{MAPS} has no mapping at {address:#x}, where code was placed")

def pages(s: CPUSession) -> str:
  """Place and call code, twice. Its pages must not be writable."""
  (code, call), visible = module(runtime).sample(runtime), visible_code(runtime)
  arena = CodeArena(visible=visible)
  try:
    for _ in range(2):
      address, chunk = arena.add(code.text)
      if not any(call(address)): raise Wrong("code that was placed and called gave no result")
    if not os.path.exists(MAPS): return "placed and called"
    with open(MAPS, encoding="utf-8") as file: kept = rights(address, file.readlines())
    if "w" in kept or "x" not in kept:
      raise Wrong(f"the pages of code are {kept}: they should be executable and not writable")
    return f"placed and called; the pages are {kept}"
  finally:
    arena.close(unmap=True)
    if visible is not None: visible.close()

def opens(s: CPUSession) -> str:
  found = s.device
  return f"{found.arch}, {found.facts()['threads']} threads"

def threads(s: CPUSession) -> str:
  """Start and stop the worker threads. All of them must run in between."""
  found = Device[s.name]
  assert isinstance(found, CPUDevice)
  ring = found.ring
  if ring.threads == 1: raise Absent("one thread: there are no others to start")
  found.rest()
  for _ in range(ROUNDS):
    ring.start()
    number = len(ring.handles)
    found.rest()
    if number != ring.threads - 1: raise Wrong(f"{number} of {ring.threads - 1} worker threads started")
  return f"{ring.threads - 1} besides the caller, started and ended {ROUNDS} times"

STEPS = (
  Probe("processor", "is it one that code can be made for", "ARCH; a virtual machine that hides AVX2; DEV=CLANG and "
        "DEV=PYTHON do without", which,
        basic=True),
  Probe("code pages", "may this process make code and run it", "security settings that forbid it: SELinux (execmem), a "
        "hardened kernel, a sandbox",
        pages, basic=True),
  Probe("opens", "does the device open as programs open it", "`python3 -m tinyhw doctor` says why it does not", opens,
        basic=True),
  Probe("threads", "do the worker threads start and end", "the limit on processes (ulimit -u, pids of a container); "
        "THREADS=1 does without", threads),
)
