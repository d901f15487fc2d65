"""Reasons why an AMD GPU cannot be driven here, in the order in which a user meets them: `python3 -m tinyhw doctor
--device AMD`.

Each check is independent, so that one run lists all necessary steps. The driver would stop at the first one.
"""
from __future__ import annotations

from tinyhw.device import show_bytes
from tinyhw.drivers.amd.kfd import connect
from tinyhw.drivers.amd.topology import CHIPS, KFD, NODES, UNKNOWN, Gpu, choose, gpus, version_name
from tinyhw.drivers.gpu.doctor import Vendor, begin, counted, refused
from tinyhw.drivers.linux.diagnosis import NOTE, OK, PROBLEM, Finding, node
from tinyhw.drivers.linux.files import HostFiles, machine
from tinyhw.errors import TinyError

AMD = Vendor("AMD", "AMD", pci=0x1002, module="amdgpu", control=KFD, log="amdgpu",
             container="--device=/dev/kfd --device=/dev/dri")

def diagnose(ordinal: int) -> list[Finding]:
  """Return the findings about GPU number `ordinal`. Only reads. /dev/kfd stays open, since a process opens it once."""
  box = machine()
  found = begin(box, AMD)
  if found[-1].state == PROBLEM: return found
  found.append(node(box, KFD, AMD.container))
  try: seen = gpus(box)
  except OSError as error:
    return [*found, Finding("topology", PROBLEM, f"{NODES} cannot be read ({error.strerror})",
                            "let the container or service see /sys")]
  found.append(counted(AMD, "topology", len(seen), ordinal))
  if found[-1].state == PROBLEM: return found
  gpu = seen[ordinal]
  found += [_chip(gpu), node(box, gpu.render_node, AMD.container)]
  if all(f.state != PROBLEM for f in found): found += [_driven(box, ordinal), _interface(box), _window(gpu)]
  return found

def _chip(gpu: Gpu) -> Finding:
  name = version_name(gpu.values.get("gfx_target_version", 0))
  if gpu.chip is not UNKNOWN: return Finding("chip", OK, f"{name}, which is driven as {gpu.chip.arch}")
  return Finding("chip", PROBLEM, f"it is a {name}, which has no driver here; there are "
                 f"{', '.join(chip.arch for chip in CHIPS.values())}",
                 "use another device; to add a chip is a row in drivers/amd/topology.py, if its generation is there")

def _driven(box: HostFiles, ordinal: int) -> Finding:
  """Return further requirements of the driver."""
  try: choose(box, ordinal)
  except TinyError as error: return refused("driver", error)
  return Finding("driver", OK, "all that it needs is told by the topology")

def _interface(box: HostFiles) -> Finding:
  try: version = connect(box).version
  except TinyError as error: return refused("interface", error)
  return Finding("interface", OK, f"the kernel's compute driver has {version[0]}.{version[1]}")

def _window(gpu: Gpu) -> Finding:
  """Check that all of the GPU's memory is visible through the PCI window."""
  total, seen = (show_bytes(number).split(" (")[0] for number in (gpu.vram_bytes, gpu.visible_bytes))
  if gpu.visible_bytes >= gpu.vram_bytes:
    return Finding("PCI window", OK, f"the processor sees all {total} of the GPU's memory")
  return Finding("PCI window", NOTE, f"the processor sees {seen} of {total}: all works, but other GPUs may not reach "
                 f"its memory, so that copies "
                 "between GPUs go through the host", "enable Resizable BAR and Above 4G Decoding in the firmware's "
                 "setup")
