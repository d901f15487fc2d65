"""Registers against the kernel's headers (test/golden/amd_registers.txt)."""
from pathlib import Path

import pytest

from tinyhw.autogen.amd import gc

GOLDEN = [line.split() for line in (Path(__file__).parents[2] / "golden/amd_registers.txt").read_text().splitlines()
          if not line.startswith("#")]

@pytest.mark.parametrize("generation", (9, 11, 12))
def test_registers_are_those_of_the_headers(generation: int) -> None:
  wanted = {name: (int(address, 16), sorted(fields)) for number, name, address, *fields in GOLDEN
            if int(number) == generation}
  renamed = {"interleave_bits": {"COMPUTE_NUM_THREAD_X": "interleave_bits_x",
                                 "COMPUTE_NUM_THREAD_Y": "interleave_bits_y"}}
  found = {register.name: (register.address,
                           sorted(f"{renamed.get(f.name, {}).get(register.name, f.name)}[{f.high}:{f.low}]"
                                  for f in register.fields.values()))
           for register in gc.registers(generation).rows.values() if register.name.startswith("COMPUTE_")}
  assert found == wanted and len(found) > 50

def test_a_register_makes_its_word() -> None:
  assert gc.registers(11).COMPUTE_DISPATCH_INITIATOR(compute_shader_en=1, force_start_at_000=1, cs_w32_en=1) == 0x8005
  with pytest.raises(ValueError, match="COMPUTE_DISPATCH_INITIATOR has no field cs_w32_en"):
    gc.registers(9).COMPUTE_DISPATCH_INITIATOR(cs_w32_en=1)

def test_registers_are_found_by_address() -> None:
  assert (gc.registers(9).addresses[0x2E2D].name == "COMPUTE_PGM_RSRC3" and gc.registers(12).addresses[0x2E28].name
          == "COMPUTE_PGM_RSRC3")
  assert gc.registers(11).COMPUTE_USER_DATA_15.address == 0x2E4F

def test_an_unknown_generation_is_refused() -> None:
  with pytest.raises(ValueError, match="there are 9, 11 and 12"): gc.registers(10)
