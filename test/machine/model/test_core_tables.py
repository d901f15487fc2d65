"""The notation of tables of latency."""
from tinyhw.machine.model.core_tables import CoreText, memory_of, read_table, repeated

def test_text_of_ports() -> None:
  assert (repeated("0|12*2"), repeated("-"), repeated("vw")) == ("0|12|12", "", "vw")

def test_pipes_of_memory() -> None:
  assert [memory_of(p) for p in ("load_pair", "vec_store", "prefetch", "fp_add", "unloaded")] == [
    "load", "store", "load", "", ""]

def test_a_table() -> None:
  written = CoreText("Core", "manual", 2, "\nload    3 0   1 p\nfp_div 20 1*4 2 a\n", {"0": "L", "1": "F"})
  table = read_table("core", written)
  assert (table.name, table.title, table.source, table.issue_width) == ("core", "Core", "manual", 2)
  assert table.costs["load"] == (3, "0", "load", 1) and table.costs["fp_div"] == (20, "1|1|1|1", "", 2)
  assert table.evidence == {"load": "p", "fp_div": "a"}
