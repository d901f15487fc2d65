"""Structures of NVIDIA's kernel driver against what a C compiler makes of its headers (test/golden/nvidia_rm.txt)."""
import ctypes
import re
from pathlib import Path

import pytest

from tinyhw.autogen.nvidia import rm

LINES = [line.split() for line in (Path(__file__).parents[2] / "golden/nvidia_rm.txt").read_text().splitlines() if not line.startswith("#")]
BRANCHES = (535, 550, 570, 580, 595)
# fields of the header that stand for several of ours, or that we call otherwise
WHOLE = {"params", "pci_info", "gpuNameString", "mmuFault", "timeStamp"}
PREFIXES = ("params.", "pci_info.", "gpuNameString.", "mmuFault.")
UNUSED = {"unicode", "cpuTime", "gpuTime"}

def place(structure: type[ctypes.Structure], path: str) -> tuple[int, int]:
  """Offset and size of a field, which may be one of an element or of a structure inside."""
  offset, kind = 0, structure
  for part in path.split("."):
    name, _, index = part.partition("[")
    found = getattr(kind, name)
    offset, size = offset + found.offset, found.size
    kind = dict(kind._fields_)[name]  # type: ignore[arg-type, misc]
    if index and path.index(part) + len(part) < len(path): kind, size = kind._type_, ctypes.sizeof(kind._type_)  # type: ignore[attr-defined]
  return offset, size

def test_structures_have_the_sizes_and_offsets_of_the_headers() -> None:
  compared, seen = 0, set()
  name = ""
  for words in LINES:
    if words[0] == "struct":
      name = words[2]
      seen.add(name)
      for branch, size in zip(BRANCHES, words[3:]):
        structure = getattr(rm.structures(branch), name)
        assert ctypes.sizeof(structure) == (0 if size == "-" else int(size)), (name, branch)
      continue
    field = words[0]
    for prefix in PREFIXES: field = field.removeprefix(prefix)
    if words[0] in WHOLE or field.split(".")[-1].split("[")[0] in UNUSED: continue
    for branch, text in zip(BRANCHES, words[1:]):
      structure = getattr(rm.structures(branch), name)
      plain = re.sub(r"\[\d+\]$", "", field)
      if text == "-": assert plain not in dict(structure._fields_) or f"{plain}[" in field, (name, field, branch)
      else: assert place(structure, plain) == tuple(map(int, text.split(":"))), (name, field, branch)
      compared += 1
  assert compared > 1500 and len(seen) == 59
  assert set(rm.structures(580).rows) - seen == {"CopyParams", "GrRoute", "SmErrorState", "MmuFault", "AcquireComputeModeReservation"}, (
    "parts of others, one of 8 bytes, and one of none")

def test_branches_between_the_known_ones_are_refused() -> None:
  assert rm.structures(590).UvmFree is not rm.structures(580).UvmFree
  for version in (470, 530, 560, 610):
    with pytest.raises(ValueError, match=f"driver {version} are not known; known are 535, 550"): rm.structures(version)

def test_calls_have_the_numbers_of_the_interface() -> None:
  calls = rm.structures(580)
  assert calls.RmAlloc.REQUEST == 0xC030462B and calls.RmControl.REQUEST == 0xC020462A and calls.RegisterFd.REQUEST == 0xC00446C9
  assert rm.structures(550).RmMapMemoryDma.REQUEST == 0xC0384657 and calls.RmMapMemoryDma.REQUEST == 0xC0404657
  assert calls.UvmInitialize.REQUEST == 0x30000001 and calls.UvmMapExternal.REQUEST == 33
  assert not hasattr(calls.ChannelParams, "REQUEST")
