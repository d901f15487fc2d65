"""Reasons why an OpenCL device cannot be used here: `python3 -m tinyhw doctor --device OPENCL`.

It lists the devices of all drivers and opens none: library, drivers, devices, the chosen one, its facts.
"""
from __future__ import annotations

from tinyhw.device import show_bytes
from tinyhw.drivers import opencl
from tinyhw.drivers.linux.diagnosis import NOTE, OK, PROBLEM, Finding
from tinyhw.drivers.opencl.facts import ClFacts, all_devices, chosen
from tinyhw.errors import TinyError

def diagnose(ordinal: int) -> list[Finding]:
  """Return the findings about OpenCL device number `ordinal`."""
  try: library = opencl.library()
  except TinyError as error: return [refused("library", error)]
  found = [Finding("library", OK, "libOpenCL is loaded")]
  try: devices = all_devices(library)
  except TinyError as error: return [*found, refused("drivers", error)]
  found.append(Finding("drivers", OK, ", ".join(sorted({facts.platform for facts in devices})) or "no devices"))
  try: devices = chosen(devices)
  except TinyError as error: return [*found, refused("names", error)]
  found += [Finding(f"OPENCL:{k}", NOTE if facts.missing() else OK,
                    ", ".join([f"{facts.title}, {facts.kind}", *facts.missing()]))
            for k, facts in enumerate(devices)]
  if ordinal < len(devices): return [*found, *of_device(devices[ordinal])]
  words = f"there is no number {ordinal}: the drivers have {len(devices)} devices that OPENCL_DEVICES allows"
  return [*found, Finding("device", PROBLEM, words, "clinfo shows what the drivers see; groups of /dev/dri may be "
                          "missing")]

def refused(name: str, error: TinyError) -> Finding:
  """Return an error of the driver as a finding. The text after the semicolon of the message is the advice."""
  words, _, fix = error.message.partition("; ")
  return Finding(name, PROBLEM, words, fix)

def of_device(facts: ClFacts) -> list[Finding]:
  """Return the facts on which kernels depend."""
  missing = facts.missing()
  shared, memory, largest, cache = (show_bytes(size).split(" (")[0] for size in (
    facts.local_bytes, facts.memory_bytes, facts.most_bytes, facts.cache_bytes))
  return [
    Finding("version", OK, f"{facts.version}, driver {facts.driver}"),
    Finding("needed", PROBLEM, ", ".join(missing), "use another device") if missing
    else Finding("needed", OK, "exact division, infinities and NaNs, a compiler, 64-bit addresses"),
    Finding("float64", OK, "yes") if facts.double else Finding("float64", NOTE, "no: kernels with it are refused"),
    Finding("float16", OK, f"stored, and converted to float32 for arithmetic{half(facts)}"),
    Finding("subnormals", NOTE, "float32 flushes them to 0") if facts.flushes else Finding("subnormals", OK, "kept"),
    Finding("workgroup", OK, f"up to {facts.most_lanes} lanes, {shared} of shared memory; {subgroups(facts)}"),
    Finding("memory", OK, f"{memory}, {largest} in one buffer; a cache of {cache}"),
  ]

def half(facts: ClFacts) -> str:
  return "; the device has its own arithmetic, which is not used" if "cl_khr_fp16" in facts.extensions else ""

def subgroups(facts: ClFacts) -> str:
  return f"{facts.subgroups} subgroups, which are not used" if facts.subgroups else "no subgroups"
