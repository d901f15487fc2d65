"""Programs and recordings: the words of a launch, register values, patches, refusals."""
import ctypes
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from amd.box import AMDBox, Opener, arguments, code

from tinyhw.device import Launch
from tinyhw.drivers.amd import topology
from tinyhw.drivers.amd.commands import Commands
from tinyhw.drivers.amd.launch import registers
from tinyhw.errors import DeviceError

GOLDEN = Path(__file__).parents[2] / "golden"
KINDS = ("gfx1100", "gfx1200", "gfx942", "gfx950")

def test_the_words_of_a_launch_are_those_that_were_reviewed() -> None:
  program = "import make_amd_launch as m; print(*(text for chip in m.CHIPS for text in m.dump(chip)), sep='\\n')"
  made = subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, {str(GOLDEN)!r}); {program}"],
                        check=True, capture_output=True,
                        text=True).stdout
  assert made == (GOLDEN / "amd_launch.txt").read_text(), ("python3 test/golden/make_amd_launch.py, and review the "
                                                           "difference")

def test_the_words_in_the_documents_are_these() -> None:
  text = (GOLDEN.parents[1] / "docs/hardware/amd.md").read_text(encoding="utf-8")
  block = text.partition("<!-- launch of gfx1100")[2].split("```")[1]
  def hexadecimal(line: str) -> list[str]:
    return [word for word in line.split() if re.fullmatch(r"[0-9a-f]{8}|\.{8}", word)]
  golden = (GOLDEN / "amd_launch.txt").read_text().split("# gfx1200")[0]
  assert [hexadecimal(line) for line in block.strip().splitlines()] == [hexadecimal(line)
                                                                        for line in golden.splitlines()[1:]]

def rsrc(kind: str, **fields: Any) -> tuple[int, int, int]:
  gpu = topology.gpus(AMDBox(kind))[0]
  return registers(code(kind, **fields), gpu, Commands(gpu))

# Registers against LLVM's for the same resources (test/golden/amd_hsa.txt), except the mode of floats and, on gfx1100,
# PRIV.
FLOATS, PRIV = 0xF0 << 12, 1 << 20
@pytest.mark.parametrize("kind, used, wave, first, third", [
  ("gfx1100", {"vgpr": 8, "sgpr": 16}, 32, 0xE0AC0000, 0x10), ("gfx1100", {"vgpr": 9}, 32, 0xE0AC0001, 0x10),
  ("gfx1100", {"vgpr": 128, "sgpr": 100}, 32, 0xE0AC000F, 0x10), ("gfx1100", {"vgpr": 256}, 32, 0xE0AC001F, 0x10),
  ("gfx1100", {"vgpr": 32}, 64, 0xE0AC0007, 0x10), ("gfx1200", {"vgpr": 8, "sgpr": 16}, 32, 0xE00C0000, 0x10),
  ("gfx1200", {"vgpr": 256}, 32, 0xE00C001F, 0x10), ("gfx1200", {"vgpr": 32}, 64, 0xE00C0007, 0x10),
  ("gfx942", {"vgpr": 4, "agpr": 4, "sgpr": 16}, 64, 0xAC0080, 0),
  ("gfx942", {"vgpr": 256, "agpr": 256, "sgpr": 100}, 64, 0xAC037F, 0x3F),
  ("gfx942", {"vgpr": 64, "agpr": 64, "sgpr": 32}, 64, 0xAC010F, 0xF),
  ("gfx942", {"vgpr": 64, "sgpr": 16}, 64, 0xAC0087, 0xF)])
def test_registers_are_those_of_llvm(kind: str, used: dict[str, int], wave: int, first: int, third: int) -> None:
  found = rsrc(kind, registers=tuple(used.items()), wave=wave)
  assert hex(found[0]) == hex(first & ~(0xFF << 12) | FLOATS | (PRIV if kind == "gfx1100" else 0)) and found[2] == third

def test_local_memory_scratch_and_where_the_workgroup_stands() -> None:
  assert rsrc("gfx1100")[1] == 15 << 1 | 1 << 7 and rsrc("gfx1200")[1] == rsrc("gfx942")[1] == 2 << 1 | 1 << 7
  assert rsrc("gfx1100", local_bytes=1)[1] >> 15 == 1 and rsrc("gfx1100", local_bytes=65536)[1] >> 15 == 128
  assert rsrc("gfx1100", private_bytes=4)[1] & 1
  assert [rsrc("gfx950", local_bytes=size)[1] >> 15 for size in (0, 1, 2560, 2561, 160 << 10)] == [0, 5, 5, 10, 320]

@pytest.mark.parametrize("kind, fields, reason", [
  ("gfx1100", {"registers": (("vgpr", 257),)}, "wants 257 vgpr, and gfx1100 has 256"),
  ("gfx1100", {"registers": (("agpr", 1),)}, "wants 1 agpr, and gfx1100 has 0"),
  ("gfx942", {"registers": (("sgpr", 103),)}, "wants 103 sgpr, and gfx942 has 102"),
  ("gfx1200", {"lanes": 1025}, "wants 1025 lanes, and gfx1200 has 1024"),
  ("gfx1100", {"local_bytes": 65537}, "wants 65537 bytes of shared memory"),
  ("gfx942", {"wave": 32}, "waves of 32 lanes; gfx942 has 64")])
def test_more_than_the_chip_has_is_refused(kind: str, fields: Any, reason: str) -> None:
  with pytest.raises(DeviceError, match=reason): rsrc(kind, **fields)

@pytest.mark.parametrize("kind", KINDS)
def test_a_launch_has_its_code_arguments_and_size(opened: Opener, kind: str) -> None:
  box, device = opened(kind)
  a = device.allocator.alloc(100)
  program = device.load(code(kind, text=b"machine code", entry=0))
  device.submit([Launch(program, [a], [-5], 3), Launch(program, [a], [1 << 40], 0), Launch(program, [a], [7], 9)])
  device.synchronize()
  assert [groups for _, groups in box.dispatches] == [3, 9], "no workgroups are a NOP"
  (first, _), (second, _) = box.dispatches
  assert arguments(first, 2) == [a.address, -5] and arguments(second, 2) == [a.address, 7]
  assert first["COMPUTE_USER_DATA_0"] % 64 == 0
  place = first["COMPUTE_PGM_LO"] << 8 | first["COMPUTE_PGM_HI"] << 40
  assert place == program.place.address and ctypes.string_at(place, 12) == b"machine code" and place % 256 == 0
  assert first["COMPUTE_NUM_THREAD_X"] == 64 and first["initiator"] == (5 if kind.startswith("gfx9") else 0x8005)
