"""Reasons why a WebGPU adapter cannot be used here: `python3 -m tinyhw doctor --device WEBGPU`.

It lists the adapters and opens none: library, adapters, names, the chosen one's facts.
"""
from __future__ import annotations

from tinyhw.device import show_bytes
from tinyhw.drivers import webgpu
from tinyhw.drivers.linux.diagnosis import NOTE, OK, PROBLEM, Finding
from tinyhw.drivers.webgpu.facts import WgpuFacts, all_adapters, chosen
from tinyhw.errors import TinyError

LOOPS = "loops"   # a feature of an arch

def diagnose(ordinal: int) -> list[Finding]:
  """Return the findings about WebGPU adapter number `ordinal`."""
  try: library = webgpu.library()
  except TinyError as error: return [refused("library", error)]
  found = [Finding("library", OK, f"wgpu-native {library.version} is loaded")]
  try: adapters = all_adapters(library)
  except TinyError as error: return [*found, refused("adapters", error)]
  try: devices = chosen(adapters)
  except TinyError as error: return [*found, refused("names", error)]
  finally:
    for facts in adapters: library.call("AdapterRelease", facts.handle)
  found += [Finding(f"WEBGPU:{k}", NOTE if facts.missing() else OK,
                    ", ".join([f"{facts.title}, {facts.kind}", *facts.missing()])) for k, facts in enumerate(devices)]
  if ordinal < len(devices): return [*found, *of_adapter(devices[ordinal])]
  words = f"there is no number {ordinal}: {len(devices)} adapters are there that WEBGPU_DEVICES allows"
  return [*found, Finding("adapter", PROBLEM, words, "install the GPU's driver, or name another number")]

def refused(name: str, error: TinyError) -> Finding:
  """Return an error of the driver as a finding. The text after the semicolon of the message is the advice."""
  words, _, fix = error.message.partition("; ")
  return Finding(name, PROBLEM, words, fix)

def of_adapter(facts: WgpuFacts) -> list[Finding]:
  """Return the facts on which kernels depend."""
  missing = facts.missing()
  shared, largest, bound = (show_bytes(size).split(" (")[0] for size in (facts.local_bytes, facts.most_bytes,
                                                                        facts.binding_bytes))
  return [
    Finding("driver", OK, facts.driver or "unknown"),
    Finding("needed", PROBLEM, ", ".join(missing), "use another adapter") if missing
    else Finding("needed", OK, "lanes, shared memory, buffers of a kernel"),
    Finding("float64", NOTE, "no: WGSL does not have it, and kernels with it are refused"),
    Finding("loops", OK, "of any length") if LOOPS not in facts.arch else Finding(
      "loops", NOTE, f"the driver ends them after {facts.arch.partition(LOOPS)[2]} iterations: longer are refused"),
    Finding("int64", OK, "as pairs of 32-bit words"),
    Finding("workgroup", OK, f"up to {facts.most_lanes} lanes, {shared} of shared memory; subgroups are not used"),
    Finding("memory", OK, f"{largest} in one buffer, of which a kernel is given {bound}; {facts.most_buffers} "
                          f"buffers of a kernel"),
    Finding("times", OK, "timestamps of the adapter") if facts.has_timestamps
    else Finding("times", NOTE, "no timestamps: times are those of the host"),
  ]
