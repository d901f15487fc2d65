"""Time the CPU driver alone: empty kernels through the ring, without tensors.

    python3 test/bench/launch.py

submit: one launch, from Python and back. replay: a recording of 1 and of 64 launches (the second per launch). shared: a
grid that two threads may share, submitted at once and after the workers fell asleep. open: Device["CPU"] in a fresh
process, imports included. The least and the median of many; `shared` means little on a machine that does other things.
"""
from __future__ import annotations
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from tinyhw.device import Device, Launch
from tinyhw.machine.ir.code import Code

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

CALLS, ROUNDS, PAUSE_S = 500, 41, 0.0003
OPEN = ("import time; s = time.perf_counter(); from tinyhw.device import Device; Device['CPU']; "
        "print(time.perf_counter() - s)")

def show(name: str, seconds: list[float], unit: float, suffix: str) -> None:
  print(f"{name:<28}{min(seconds) / unit:9.2f} {statistics.median(seconds) / unit:9.2f} {suffix}")

def per_call(run: Callable[[], None]) -> list[float]:
  found = []
  for _ in range(ROUNDS):
    start = time.perf_counter()
    for _ in range(CALLS): run()
    found.append((time.perf_counter() - start) / CALLS)
  return found

def after_pauses(run: Callable[[], None]) -> list[float]:
  found = []
  for _ in range(CALLS):
    time.sleep(PAUSE_S)
    start = time.perf_counter()
    run()
    found.append(time.perf_counter() - start)
  return found

def main() -> None:
  device = Device["CPU"]
  program = device.load(Code("empty", device.arch, b"\xc3", ("buffer", "int64")))
  memory = device.allocator.alloc(64)
  one, shared = [Launch(program, (memory,), (1,))], [Launch(program, (memory,), (1,), 64)]
  single, chain = device.record(one), device.record(one * 64)
  print(f"{device.facts()['processor']}, {device.facts()['threads']} threads{'least':>20} {'median':>9}")
  show("submit", per_call(lambda: device.submit(one)), 1e-6, "us")
  show("replay of 1", per_call(single.submit), 1e-6, "us")
  show("replay of 64, each", [s / 64 for s in per_call(chain.submit)], 1e-9, "ns")
  show("patch", per_call(lambda: single.patch(0, 0, memory)), 1e-6, "us")
  show("allocate and free", per_call(lambda: device.allocator.free(device.allocator.alloc(4096))), 1e-6, "us")
  show("shared", per_call(lambda: device.submit(shared)), 1e-6, "us")
  show("shared, workers asleep", after_pauses(lambda: device.submit(shared)), 1e-6, "us")
  opened = [float(subprocess.run([sys.executable, "-c", OPEN], capture_output=True, text=True, cwd=ROOT,
                                 check=True).stdout) for _ in range(7)]
  show("open", opened, 1e-3, "ms")

if __name__ == "__main__": main()
