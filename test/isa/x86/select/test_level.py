"""Rows under a level's names."""
import pytest

from tinyhw.errors import CompileError, EncodeError
from tinyhw.isa.x86.capabilities import LEVELS, capabilities
from tinyhw.isa.x86.select.evex import NAMES, EvexMasks
from tinyhw.isa.x86.select.level import Level, LevelTable
from tinyhw.isa.x86.select.mask import LaneMasks
from tinyhw.isa.x86.table.table import TABLE

def test_rows_go_by_other_names():
  rows = LevelTable({"vpand": "vpandd"})
  assert (rows["vpand_y_y_y"] is TABLE["vpandd_y_y_y"] and rows["vaddps_z_z_z"] is TABLE["vaddps_z_z_z"]
          and rows["ret"] is TABLE["ret"])
  with pytest.raises(EncodeError, match="vpandd has no form"): rows["vpand_q_q"]

def test_a_level_has_no_row_that_its_processors_lack():
  """A product of 64-bit lanes on AVX2 was an illegal instruction; now a request beyond the capabilities is refused."""
  with pytest.raises(CompileError, match="vpmullq needs avx512dq,avx512vl, which this level"):
    LaneMasks.rows["vpmullq_y_y_y"]
  assert (LaneMasks.rows["vpmulld_y_y_y"] is TABLE["vpmulld_y_y_y"]
          and EvexMasks.rows["vpmullq_y_y_y"] is TABLE["vpmullq_y_y_y"])

@pytest.mark.parametrize("name", NAMES)
def test_other_names_reach_all_registers(name):
  """Each replaces a row that only VEX has, and has the same operands in EVEX."""
  for row in TABLE.rows(name):
    assert all(e.space == "vex" for e in row.isa.encodings)
  assert any(any(e.space == "evex" for e in row.isa.encodings) for row in TABLE.rows(NAMES[name]))

def test_levels_define_everything():
  methods = [name for name, value in vars(Level).items() if callable(value) and not name.startswith("_")]
  for level in (LaneMasks, EvexMasks):
    for name in methods: assert name in vars(level), f"{level.__name__} has no {name}"

def test_unknown_level():
  with pytest.raises(CompileError, match="no level of x86-64"): capabilities("x86_64:sse2")
  assert set(LEVELS) == {"x86_64:avx2", "x86_64:avx512", "x86_64:avx512vnni", "x86_64:avx512bf16", "x86_64:amx"}
