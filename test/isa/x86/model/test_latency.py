"""Tables of latency: complete, well formed, found for their processors."""
from __future__ import annotations
import pytest

from tinyhw.drivers.cpu.x86 import FEATURES
from tinyhw.isa.x86.asm.syntax import parse
from tinyhw.isa.x86.model import latency
from tinyhw.isa.x86.table.table import TABLE
from tinyhw.machine.ir.costs import PipeCost
from tinyhw.machine.model.scoreboard import bound, costs_of

AVX512_ONLY = {"compress", "scatter", "int_to_mask", "mask_logic", "mask_mov", "mask_shift", "mask_test", "mask_to_int",
               "mask_to_vec", "vec_to_mask",
               "narrow", "vec_compare_mask", "vec_dot", "vec_mul_q", "bf16_dot"}
OF_TILES = {"tile_config", "tile_dot", "tile_load", "tile_store", "tile_zero"}    # Intel's only

@pytest.mark.parametrize("name", latency.TABLES)
def test_every_pipe_of_the_instruction_table_has_a_row(name: str) -> None:
  costs = latency.find(name).costs
  pipes = {line.pipe for mnemonic in TABLE.mnemonics() for line in TABLE.parse(mnemonic)} | {"load", "store"}
  assert pipes - set(costs) == {"zen3": AVX512_ONLY | OF_TILES, "zen4": OF_TILES}.get(name, set())

@pytest.mark.parametrize("name", latency.TABLES)
def test_rows_name_known_ports_and_carry_their_evidence(name: str) -> None:
  table = latency.find(name)
  assert table.source and table.title
  for row, cost in table.costs.items():
    assert set(cost.ports) <= set(table.ports) | {"|"}, row
    assert table.evidence[row] in ("p", "m", "a"), row
    assert cost.latency >= 0 and cost.slots >= 1, row
  assert name != "generic" or set(table.evidence.values()) == {"a"}

def test_text_of_ports() -> None:
  assert latency.repeated("0|12*2") == "0|12|12"
  assert latency.repeated("-") == ""
  assert latency.doubled("0|12") == "0|0|12|12"

def test_512_bits_take_twice_as_long_on_zen4() -> None:
  table = latency.find("zen4").costs
  assert costs_of(parse("vfmadd231ps zmm0, zmm1, zmm2"), table) == [PipeCost(4, "uv|uv")]
  assert costs_of(parse("vfmadd231ps ymm0, ymm1, ymm2"), table) == [PipeCost(4, "uv")]

def test_a_broadcast_from_memory_is_only_a_load() -> None:
  table = latency.find("skylakex")
  assert bound([parse("vbroadcastss ymm0, dword ptr [rax]")], table.costs, table.issue_width).ports == 0.5
  assert bound([parse("vbroadcastss ymm0, xmm1")], table.costs, table.issue_width).ports == 1

@pytest.mark.parametrize("vendor, signature, name", [
  ("AuthenticAMD", 0x00A00F11, "zen3"),      # EPYC 7003
  ("AuthenticAMD", 0x00A20F12, "zen3"),      # Ryzen 5000
  ("AuthenticAMD", 0x00A10F11, "zen4"),      # EPYC 9004
  ("AuthenticAMD", 0x00A60F12, "zen4"),      # Ryzen 7000
  ("GenuineIntel", 0x00050657, "skylakex"),  # Cascade Lake
  ("GenuineIntel", 0x000606A6, "icelake"),
  ("GenuineIntel", 0x00090672, "alderlake"),
  ("GenuineIntel", 0x000A06D1, "graniterapids"),
  ("GenuineIntel", 0x000306C3, "generic"),   # Haswell
  ("SomebodyElse", 0x00A00F11, "generic"),
])
def test_processors_find_their_table(vendor: str, signature: int, name: str) -> None:
  assert latency.microarchitecture(vendor, signature) == name

@pytest.mark.parametrize("features, name", [(("avx2",), "icelake"), (("avx512fp16",), "alderlake"),
                                            (("amx_tile", "avx10"), "graniterapids")])
def test_features_tell_the_core_behind_a_hypervisor(features: tuple[str, ...], name: str) -> None:
  assert latency.microarchitecture("GenuineIntel", 0x000A0671, features) == name   # shown as Rocket Lake
  assert latency.microarchitecture("AuthenticAMD", 0x00A10F11, features) == "zen4"

def test_features_are_those_that_the_driver_reports() -> None:
  assert {feature for pairs in latency.INTRODUCED.values() for feature, _ in pairs} <= set(FEATURES)

def test_an_unknown_name_gives_the_generic_table() -> None:
  assert latency.find("abacus").name == "generic"
