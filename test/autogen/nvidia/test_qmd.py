"""Queue meta data against the fields of the vendor's headers (test/golden/nvidia_qmd.txt)."""
import re
from pathlib import Path

import pytest

from tinyhw.autogen.nvidia import qmd

GENERATION = {"C7C0": 8, "CBC0": 9, "CDC0": 10}

def golden() -> dict[int, dict[str, tuple[int, int, int]]]:
  found: dict[int, dict[str, tuple[int, int, int]]] = {}
  for line in (Path(__file__).parents[2] / "golden/nvidia_qmd.txt").read_text().splitlines():
    words = line.split()
    if line.startswith("qmd"): fields = found.setdefault(GENERATION[words[1]], {})
    elif not line.startswith("#"): fields[words[0]] = (int(words[1]), int(words[2]), int(words[3]))
  return found

def spelled(name: str, shift: int) -> list[str]:
  """Return the header's possible names for a field of ours: the whole field, or the first of two."""
  upper = name.upper()
  names = {upper, upper.replace("RELEASE0", "RELEASE_SEMAPHORE0").replace("RELEASE1", "RELEASE_SEMAPHORE1"),
           upper.replace("RELEASE0_ADDR", "RELEASE0_ADDRESS").replace("RELEASE1_ADDR", "RELEASE1_ADDRESS"),
           re.sub("^RELEASE_", "RELEASE0_", upper),
           upper.replace("DEPENDENT_QMD0", "DEPENDENT_QMD"), upper.replace("QMD_MINOR_VERSION", "QMD_VERSION"),
           upper + "_V",
           upper.replace("GRID", "CTA_RASTER")}
  return [n + middle + end for n in names for middle in ("", "_LOWER") for end in ("", "_SHIFTED", f"_SHIFTED{shift}")]

@pytest.mark.parametrize("generation", GENERATION.values())
def test_fields_have_the_bits_of_the_header(generation: int) -> None:
  header = golden()[generation]
  for field in qmd.layout(generation).fields.values():
    name = next(n for n in spelled(field.name, field.shift) if n in header)
    low, high, stride = header[name]
    upper = next((n for n in (name.replace("LOWER", "UPPER"),) if n != name and n in header), None)
    if upper is not None and not field.name.endswith("lower"):
      assert header[upper][0] == high + 1, field.name                        # adjacent
      high = header[upper][1]
    assert (field.low, field.high) == (low, high), field.name
    if stride and field.stride: assert field.stride == stride, field.name
    if "SHIFTED" in name and name[-1].isdigit(): assert field.shift == int(name.rpartition("SHIFTED")[2]), field.name

def test_version_3_releases_lie_as_far_apart_as_the_rows_say() -> None:
  header = golden()[8]
  for field in qmd.layout(8).fields.values():
    if field.name.startswith("release_"):
      assert header[field.name.upper().replace("RELEASE_", "RELEASE1_")][0] == field.low + field.stride

@pytest.mark.parametrize("generation", GENERATION.values())
def test_what_is_encoded_is_shown(generation: int) -> None:
  layout = qmd.layout(generation)
  values = {"grid_width": 70000, "program_address": 0x12_3456_7800, "constant_buffer_addr[3]": 0x7F_0000_0040,
            "constant_buffer_size[3]": 0x160,
            "release_enable[1]": 1, "shared_memory_size": 49152, "register_count": 255,
            "dependent_qmd0_pointer": 0xFF_FF00}
  data = layout.encode(values)
  assert len(data) == layout.bytes and layout.show(data) == values
  assert layout.get(data, "grid_height") == 0

def test_what_does_not_fit_is_refused() -> None:
  layout = qmd.layout(9)
  with pytest.raises(ValueError, match="does not fit into 9 bits"): layout.encode({"register_count": 512})
  with pytest.raises(ValueError, match="not a multiple of 64"): layout.encode({"constant_buffer_addr[0]": 32})
  with pytest.raises(ValueError, match="has no field sm_global_caching_enable"):
    layout.encode({"sm_global_caching_enable": 1})
  with pytest.raises(ValueError, match=r"has no field grid_width\[0\]"): layout.encode({"grid_width[0]": 1})
  with pytest.raises(ValueError, match="no QMD of generation 7"): qmd.layout(7)
