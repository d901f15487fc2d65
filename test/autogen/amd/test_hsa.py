"""AQL structures against the layouts of a C compiler for the headers, and kernel descriptors against LLVM's.

Both are in test/golden/amd_hsa.txt.
"""
import ctypes
import re
from pathlib import Path

import pytest

from tinyhw.autogen.amd import gc, hsa

LINES = [line for line in (Path(__file__).parents[2] / "golden/amd_hsa.txt").read_text().splitlines()
         if not line.startswith("#")]
STRUCTURES = {"hsa_kernel_dispatch_packet_t": hsa.KernelDispatchPacket,
              "hsa_barrier_and_packet_t": hsa.BarrierAndPacket, "amd_queue_t": hsa.Queue,
              "amd_signal_t": hsa.Signal}
# parts of unions that other fields represent
OTHER_NAMES = {"full_header", "hsa_queue", "hardware_doorbell_ptr", "reserved2"}
DESCRIPTORS = [line.removeprefix("descriptor ").split("; ") for line in LINES if line.startswith("descriptor")]
GENERATION = {"gfx1100": 11, "gfx1200": 12, "gfx942": 9, "gfx950": 9}

def test_structures_have_the_sizes_and_offsets_of_the_headers() -> None:
  compared = 0
  for name, size, *fields in (line.split() for line in LINES if not line.startswith("descriptor")):
    if name not in STRUCTURES: continue
    assert ctypes.sizeof(STRUCTURES[name]) == int(size)
    for text in fields:
      field, offset, width = re.fullmatch(r"(\w+)@(\d+):(\d+)", text).groups()  # type: ignore[union-attr]
      if field in OTHER_NAMES: continue
      found = getattr(STRUCTURES[name], field)
      assert (found.offset, found.size) == (int(offset), int(width)), (name, field)
      compared += 1
  assert compared > 40

def test_a_pm4_packet_in_aql_is_a_packet() -> None:
  packet = hsa.Pm4IndirectPacket(header=hsa.HEADER(type=hsa.PACKET_TYPE_VENDOR_SPECIFIC, barrier=1),
                                 format=hsa.FORMAT_PM4_IB, remaining=10)
  packet.indirect_buffer[:] = (0xC0023F00, 0x2000, 1, 0x800040)
  packet.completion_signal = 0x1122334455667788
  words = list((ctypes.c_uint32 * 16).from_buffer_copy(packet))
  assert words == [0x00010100, 0xC0023F00, 0x2000, 1, 0x800040, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0x55667788, 0x11223344]

def test_the_header_of_a_dispatch() -> None:
  assert hsa.HEADER(type=hsa.PACKET_TYPE_KERNEL_DISPATCH, barrier=1, acquire_fence_scope=2,
                    release_fence_scope=2) == 0x1502

@pytest.mark.parametrize("processor, directives, text", DESCRIPTORS)
def test_descriptors_of_llvm_read_as_what_was_asked_for(processor: str, directives: str, text: str) -> None:
  found = hsa.KernelDescriptor.from_buffer_copy(bytes.fromhex(text))
  asked = {name: int(value) for name, value in (word.split("=") for word in directives.split())}
  registers = gc.registers(GENERATION[processor])
  rsrc1, rsrc2 = (getattr(registers, f"COMPUTE_PGM_RSRC{n}").decode([getattr(found, f"compute_pgm_rsrc{n}")])
                  for n in (1, 2))
  assert found.group_segment_fixed_size == asked.get("group_segment_fixed_size",
                                                     0) and found.kernarg_size == asked.get("kernarg_size", 0)
  assert found.private_segment_fixed_size == asked.get("private_segment_fixed_size", 0)
  wave32 = asked.get("wavefront_size32", 1) if GENERATION[processor] > 9 else 0
  properties = hsa.KERNEL_CODE_PROPERTIES.decode([found.kernel_code_properties])
  assert properties["enable_wavefront_size32"] == wave32
  assert properties["enable_sgpr_kernarg_segment_ptr"] == asked.get("user_sgpr_kernarg_segment_ptr", 0)
  granule = 8 if wave32 or GENERATION[processor] == 9 else 4
  assert rsrc1["vgprs"] == -(-asked["next_free_vgpr"] // granule) - 1
  assert rsrc2["scratch_en"] == asked.get("enable_private_segment", 0)
  assert rsrc2["tgid_y_en"] == asked.get("system_sgpr_workgroup_id_y",
                                         0) and rsrc2["tidig_comp_cnt"] == asked.get("system_vgpr_workitem_id", 0)
  if GENERATION[processor] == 9:
    rsrc3 = registers.COMPUTE_PGM_RSRC3.decode([found.compute_pgm_rsrc3])
    assert 4 * (rsrc3["accum_offset"] + 1) == asked["accum_offset"] and rsrc3["tg_split"] == asked.get("tg_split", 0)
  else: assert rsrc1["wgp_mode"] == asked.get("workgroup_processor_mode", 1)
