"""Structures of NVIDIA's kernel driver against the layouts of a C compiler for its headers
(test/golden/nvidia_rm.txt)."""
import ctypes
from pathlib import Path

import pytest

from tinyhw.autogen.nvidia import rm

TEXT = [line.split() for line in (Path(__file__).parents[2] / "golden/nvidia_rm.txt").read_text().splitlines()
        if not line.startswith("#")]
VERSIONS, LINES = [rm.version_of(text) for text in TEXT[0][1:]], TEXT[1:]
PREFIXES = ("params.", "pci_info.", "gpuNameString.", "mmuFault.")   # of inner structures that ours lack

def place(structure: type[ctypes.Structure], path: str) -> tuple[int, int]:
  """Return offset and size of a field, which may belong to an element or to an inner structure."""
  offset, kind = 0, structure
  size = 0
  for part in path.split("."):
    name, _, index = part.partition("[")
    found = getattr(kind, name)
    offset, size = offset + found.offset, found.size
    kind = dict(kind._fields_)[name]  # type: ignore[arg-type, misc]
    if index: kind, size = kind._type_, ctypes.sizeof(kind._type_)  # type: ignore[attr-defined]
  return offset, size

def of_versions(values: list[str]) -> list[tuple[rm.Version, str]]:
  """Expand one value to all versions."""
  assert len(values) in (1, len(VERSIONS)), values
  return list(zip(VERSIONS, values * len(VERSIONS) if len(values) == 1 else values))

def test_structures_have_the_sizes_and_offsets_of_the_headers() -> None:
  seen = dict[str, int]()
  name = ""
  for words in LINES:
    if words[0] == "struct":
      name = words[2]
      seen[name] = 0
      for version, size in of_versions(words[3:]):
        assert ctypes.sizeof(getattr(rm.structures(version), name)) == (0 if size == "-"
                                                                        else int(size)), (name, version)
      continue
    field = words[0]
    for prefix in PREFIXES: field = field.removeprefix(prefix)
    for version, text in of_versions(words[1:]):
      structure = getattr(rm.structures(version), name)
      if text == "-": assert field not in dict(structure._fields_), (name, field, version)
      else: assert place(structure, field) == tuple(map(int, text.split(":"))), (name, field, version)
      seen[name] += 1
  assert all(count >= len(VERSIONS) for count in seen.values())
  assert set(rm.structures((580,)).rows) - set(seen) == {"SmErrorState", "MmuFault",
                                                         "AcquireComputeModeReservation"}, ("parts of others, and "
                                                                                            "nothing")
  assert {version[0] for version in VERSIONS} == set(rm.BRANCHES)

def test_branches_between_the_known_ones_are_refused() -> None:
  for version in ((470, 57), (530, 30, 2), (585, 1), (610, 12)):
    words = f"driver {version[0]} are not known; known are 535, 545, 550, 555, 560, 565, 570, 575, 580, 590, 595$"
    with pytest.raises(ValueError, match=words): rm.structures(version)

def test_a_version_has_what_came_until_then() -> None:
  """A version has fields of earlier ones, within a branch too, and in versions later than the table."""
  def attributes(*version: int) -> int: return ctypes.sizeof(rm.structures(version).UvmMapExternal) // 36
  assert [attributes(550, 40, 7), attributes(550, 40, 53), attributes(550, 54, 14), attributes(550),
          attributes(550, 999)] == [33, 257, 257, 33, 257]
  def last(*version: int) -> int: return ctypes.sizeof(rm.structures(version).GetNameString)
  assert [last(580), last(590, 44, 1), last(590, 999, 99), last(595), last(595, 45, 4)] == [132, 132, 132, 68, 68]
  assert rm.version_of("550.40.07") == (550, 40, 7) and rm.version_of("") == ()

def test_flags_are_where_their_fields_are() -> None:
  """Headers define fields as high:low, and values from 0 on."""
  assert rm.flags("NVOS32_ATTR_", "PAGE_SIZE_4KB", "LOCATION_PCI", "PHYSICALITY_ALLOW_NONCONTIGUOUS",
                  "COHERENCY_CACHED") == 0x3A80_0000
  assert rm.flags("NVOS02_FLAGS_", "PHYSICALITY_NONCONTIGUOUS", "COHERENCY_CACHED", "MAPPING_NO_MAP") == 0x4000_1010
  assert rm.flags("NV_VASPACE_ALLOCATION_FLAGS_", "IS_EXTERNALLY_OWNED", "ENABLE_PAGE_FAULTING") == 0x48
  with pytest.raises(KeyError): rm.flags("NVOS32_ATTR_", "LOCATION_MOON")

def test_calls_have_the_numbers_of_the_interface() -> None:
  calls = rm.structures((580, 142))
  assert (calls.RmAlloc.REQUEST == 0xC030462B and calls.RmControl.REQUEST == 0xC020462A
          and calls.RegisterFd.REQUEST == 0xC00446C9)
  assert (rm.structures((550, 163, 1)).RmMapMemoryDma.REQUEST == 0xC0384657 and calls.RmMapMemoryDma.REQUEST
          == 0xC0404657)
  assert calls.UvmInitialize.REQUEST == 0x30000001 and calls.UvmMapExternal.REQUEST == 33
  assert not hasattr(calls.ChannelParams, "REQUEST")
