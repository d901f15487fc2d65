"""Reasons why a Metal device cannot be used here: `python3 -m tinyhw doctor --device METAL`.

It lists the devices, and opens none: libraries, devices, the chosen one, its facts.
"""
from __future__ import annotations
import platform
import sys

from tinyhw.config import EMULATE
from tinyhw.device import show_bytes
from tinyhw.drivers import metal
from tinyhw.drivers.linux.diagnosis import NOTE, OK, PROBLEM, Finding
from tinyhw.drivers.metal.facts import PARAVIRTUAL, MetalFacts, all_devices
from tinyhw.drivers.metal.objc import ObjectiveC
from tinyhw.errors import DeviceError

def diagnose(ordinal: int) -> list[Finding]:
  """Return the findings about Metal device number `ordinal`."""
  try: library = metal.load_library()
  except DeviceError as error:
    words, _, fix = error.message.partition("; ")
    return [Finding("library", PROBLEM, words, fix)]
  words = f"virtual, of EMULATE={EMULATE}" if library.virtual else "libobjc and Metal are loaded"
  found = [Finding("library", OK, words)]
  if not library.virtual: found += of_system()
  objc = ObjectiveC(library)
  with objc.pool():
    devices = all_devices(objc)
    for facts in devices: objc.release(facts.handle)
  found += [Finding(f"METAL:{k}", NOTE if facts.missing() else OK, ", ".join([facts.title, *facts.missing()]))
            for k, facts in enumerate(devices)]
  if ordinal < len(devices): return [*found, *of_device(devices[ordinal])]
  words = f"there is no number {ordinal}: Metal has {len(devices)} devices"
  return [*found, Finding("device", PROBLEM, words, "a sandbox, a login without a screen or a virtual machine may hide "
                          "devices: try in a terminal of the logged-in user")]

def of_system() -> list[Finding]:
  """Return the facts of this Mac on which the driver depends."""
  version, machine = platform.mac_ver()[0] or sys.platform, platform.machine()
  processor = (Finding("processor", OK, machine) if machine == "arm64" else
               Finding("processor", NOTE, f"{machine}: this Python is for Intel's processors", "use an arm64 Python"))
  return [Finding("system", OK, f"macOS {version}"), processor]

def of_device(facts: MetalFacts) -> list[Finding]:
  """Return the facts on which kernels depend."""
  missing = facts.missing()
  shared, memory, largest = (show_bytes(size).split(" (")[0] for size in (facts.local_bytes, facts.memory_bytes,
                                                                          facts.most_bytes))
  found = [
    Finding("needed", PROBLEM, ", ".join(missing), "use another device") if missing
    else Finding("needed", OK, f"families {', '.join(facts.families)}; Metal 3; memory that the processor shares"),
    Finding("float64", NOTE, "no: kernels with it are refused"),
    Finding("subnormals", NOTE, "float32 flushes them to 0"),
    Finding("threadgroup", OK, f"{shared} of memory; SIMD-groups of 32 lanes, with products of matrices"),
    Finding("memory", OK, f"{memory}, {largest} in one buffer"),
  ]
  if PARAVIRTUAL in facts.name: found.append(Finding("virtual", NOTE, "a GPU of a virtual machine: it is slow"))
  return found
