"""Why an AMD GPU cannot be driven here, in the order in which it would be noticed: `python3 -m tinyhw doctor --device AMD`.

Each thing is looked at by itself, so that one answer names all that is to be done, not only what the driver would refuse first.
"""
from __future__ import annotations

from tinyhw.device import show_bytes
from tinyhw.drivers.amd.kfd import connect
from tinyhw.drivers.amd.topology import CHIPS, KFD, NODES, UNKNOWN, Gpu, choose, gpus, version_name
from tinyhw.drivers.linux.diagnosis import NOTE, OK, PROBLEM, Finding, cards, module, node
from tinyhw.drivers.linux.files import Box, machine
from tinyhw.errors import TinyError

VENDOR, MODULE = 0x1002, "amdgpu"
CONTAINER = "--device=/dev/kfd --device=/dev/dri"

def diagnose(ordinal: int) -> list[Finding]:
  """What is found about GPU number `ordinal`. Looks only; /dev/kfd stays open, since a process opens it once."""
  box = machine()
  on_bus = cards(box, VENDOR)
  loaded = module(box, MODULE, KFD, on_bus)
  found = [*([] if on_bus is None else [_card(on_bus)]), loaded]
  if loaded.state == PROBLEM: return [next(f for f in found if f.state == PROBLEM)]  # the rest would follow from it
  found.append(node(box, KFD, CONTAINER))
  try: seen = gpus(box)
  except OSError as error:
    return [*found, Finding("topology", PROBLEM, f"{NODES} cannot be read ({error.strerror})", "let the container or service see /sys")]
  found.append(_topology(seen, ordinal))
  if found[-1].state == PROBLEM: return found
  gpu = seen[ordinal]
  found += [_chip(gpu), node(box, gpu.render_node, CONTAINER)]
  if all(f.state != PROBLEM for f in found): found += [_driven(box, ordinal), _interface(box), _window(gpu)]
  return found

def _card(on_bus: list[str]) -> Finding:
  if on_bus: return Finding("card", OK, ", ".join(on_bus))
  return Finding("card", PROBLEM, "no GPU of AMD is on the PCI bus", "look whether it has power and sits well; pass it on to a virtual machine")

def _topology(seen: list[Gpu], ordinal: int) -> Finding:
  if ordinal < len(seen): return Finding("topology", OK, f"{len(seen)} GPU{'s' if len(seen) > 1 else ''} that this process may use")
  if not seen: return Finding("topology", PROBLEM, "it shows no GPU that this process may use", f"start the container with {CONTAINER}; dmesg says "
                              "whether the module refused the card")
  return Finding("topology", PROBLEM, f"there {'is 1 GPU' if len(seen) == 1 else f'are {len(seen)} GPUs'}, and number {ordinal} is none of them",
                 f"use AMD{f':{len(seen) - 1}' if len(seen) > 1 else ''}")

def _chip(gpu: Gpu) -> Finding:
  name = version_name(gpu.values.get("gfx_target_version", 0))
  if gpu.chip is not UNKNOWN: return Finding("chip", OK, f"{name}, which is driven as {gpu.chip.arch}")
  return Finding("chip", PROBLEM, f"it is a {name}, which has no driver here; there are {', '.join(chip.arch for chip in CHIPS.values())}",
                 "use another device; to add a chip is a row in drivers/amd/topology.py, if its generation is there")

def _driven(box: Box, ordinal: int) -> Finding:
  """What else the driver insists on."""
  try: choose(box, ordinal)
  except TinyError as error: return Finding("driver", PROBLEM, error.message.partition(";")[0], error.message.partition("; ")[2])
  return Finding("driver", OK, "all that it needs is told by the topology")

def _interface(box: Box) -> Finding:
  try: version = connect(box).version
  except TinyError as error: return Finding("interface", PROBLEM, error.message.partition(";")[0], error.message.partition("; ")[2])
  return Finding("interface", OK, f"the kernel's compute driver has {version[0]}.{version[1]}")

def _window(gpu: Gpu) -> Finding:
  """Is all of the GPU's memory behind the PCI window?"""
  total, seen = (show_bytes(number).split(" (")[0] for number in (gpu.vram_bytes, gpu.visible_bytes))
  if gpu.visible_bytes >= gpu.vram_bytes: return Finding("PCI window", OK, f"the processor sees all {total} of the GPU's memory")
  return Finding("PCI window", NOTE, f"the processor sees {seen} of {total}: all works, but other GPUs may not reach its memory, so that copies "
                 "between GPUs go through the host", "enable Resizable BAR and Above 4G Decoding in the firmware's setup")
