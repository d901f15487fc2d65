"""KFD's structures against the layouts of a C compiler for the header (test/golden/amd_kfd.txt)."""
import ctypes
import re
from pathlib import Path

from tinyhw.autogen.amd import kfd_ioctl

GOLDEN = [line.split() for line in (Path(__file__).parents[2] / "golden/amd_kfd.txt").read_text().splitlines()
          if not line.startswith("#")]
# kfd_ioctl_<name>_args is the structure <Name>; others by name
OTHERS = {"kfd_process_device_apertures": kfd_ioctl.ProcessDeviceApertures,
          "kfd_memory_exception_failure": kfd_ioctl.MemoryExceptionFailure,
          "kfd_hsa_memory_exception_data": kfd_ioctl.MemoryException,
          "kfd_hsa_hw_exception_data": kfd_ioctl.HwException,
          "kfd_hsa_signal_event_data": kfd_ioctl.SignalEvent, "kfd_event_data": kfd_ioctl.EventData,
          "kfd_context_save_area_header": kfd_ioctl.ContextSaveAreaHeader}
MERGED = {"wave_state"}                                          # ours has its fields instead
SKIPPED = {"kfd_ioctl_alloc_queue_gws_args"}                     # calls that are not in the table

def camel(name: str) -> str: return "".join(word.capitalize() for word in name.split("_"))

def test_structures_have_the_sizes_and_offsets_of_the_header() -> None:
  compared = 0
  for kind, name, *rest in GOLDEN:
    if kind != "struct" or name in SKIPPED: continue
    structure = OTHERS.get(name) or getattr(kfd_ioctl, camel(name.removeprefix("kfd_ioctl_").removesuffix("_args")))
    assert ctypes.sizeof(structure) == int(rest[0]), name
    for text in rest[1:]:
      field, offset, size = re.fullmatch(r"(\w+)@(\d+):(\d+)", text).groups()  # type: ignore[union-attr]
      if field in MERGED: continue
      found = getattr(structure, field)
      assert (found.offset, found.size) == (int(offset), int(size)), (name, field)
      compared += 1
  assert compared > 120

def test_requests_have_the_numbers_of_the_header() -> None:
  compared = set()
  for kind, name, *rest in GOLDEN:
    if kind != "ioctl": continue
    spelled = camel(name.removeprefix("AMDKFD_IOC_").lower())
    structure = getattr(kfd_ioctl, {"AvailableMemory": "GetAvailableMemory"}.get(spelled, spelled))
    assert int(rest[0], 16) == structure.REQUEST and structure is kfd_ioctl.CALLS[structure.KEY]
    compared.add(structure)
  assert compared == set(kfd_ioctl.CALLS.values())

def test_constants_are_those_of_the_header() -> None:
  wanted = {name: int(rest[0], 16) for kind, name, *rest in GOLDEN if kind == "constant"}
  assert {name: getattr(kfd_ioctl, name) for name in wanted} == wanted and len(wanted) > 30

def test_an_older_kernel_knows_the_queue_without_its_last_fields() -> None:
  """The 88 bytes up to version 1.16 are a prefix of the 96 of 1.17."""
  assert kfd_ioctl.CreateQueue.sdma_engine_id.offset == 88  # type: ignore[attr-defined]
