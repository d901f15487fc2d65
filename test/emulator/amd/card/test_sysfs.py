"""tinyhw/emulator/amd/card/sysfs.py: drivers compute the right numbers from the topology."""
import pytest

from tinyhw.emulator.amd import make
from tinyhw.emulator.amd.card.computer import GpuHost
from tinyhw.emulator.amd.card.sysfs import TOPOLOGY
from tinyhw.emulator.amd.chips import CHIPS

def numbers(computer: GpuHost, path: str) -> dict[str, int]:
  return {name: int(value) for name, value in (line.split() for line in computer.read_text(path).splitlines())}

@pytest.mark.parametrize("card,cus,engines", [("gfx1100", 96, 6), ("gfx1200", 32, 2), ("gfx1201", 64, 4),
                                              ("gfx942", 38, 4)])
def test_counts_of_compute_units_and_engines(card: str, cus: int, engines: int) -> None:
  found = numbers(make(card, [card], 0, True), f"{TOPOLOGY}/nodes/1/properties")
  assert found["simd_count"] // found["simd_per_cu"] // found["num_xcc"] == cus
  assert found["array_count"] // found["simd_arrays_per_engine"] // found["num_xcc"] == engines
  assert found["gfx_target_version"] == CHIPS[card].target_version and found["capability"] >> 12 & 3 == 2
  assert found["drm_render_minor"] == 128 and found["lds_size_in_kb"] == 64

def test_nodes_of_the_topology() -> None:
  computer = make("gfx1100x2", ["gfx1100"] * 2, 0, True)
  assert sorted(computer.listdir(f"{TOPOLOGY}/nodes")) == ["0", "1", "2"]
  ids = [int(computer.read_text(f"{TOPOLOGY}/nodes/{i}/gpu_id")) for i in range(3)]
  assert ids == [0, *(gpu.gpu_id for gpu in computer.gpus)]
  processor = numbers(computer, f"{TOPOLOGY}/nodes/0/properties")
  assert processor["cpu_cores_count"] > 0 and processor["simd_count"] == 0 and processor["io_links_count"] == 2

@pytest.mark.parametrize("card", CHIPS)
def test_counts_agree_with_folders(card: str) -> None:
  computer = make(card, [card] * 3, 0, True)
  for node in range(4):
    found = numbers(computer, f"{TOPOLOGY}/nodes/{node}/properties")
    for folder in ("mem_banks", "caches", "io_links", "p2p_links"):
      path = f"{TOPOLOGY}/nodes/{node}/{folder}"
      assert found[folder + "_count"] == (len(computer.listdir(path)) if computer.exists(path) else 0), path

@pytest.mark.parametrize("large_bar,heap", [(True, 1), (False, 2)])
def test_the_heap_tells_of_the_bar(large_bar: bool, heap: int) -> None:
  computer = GpuHost("gfx1100", ["gfx1100"], large_bar=large_bar)
  bank = numbers(computer, f"{TOPOLOGY}/nodes/1/mem_banks/0/properties")
  assert bank["heap_type"] == heap and bank["size_in_bytes"] == CHIPS["gfx1100"].vram

@pytest.mark.parametrize("card", CHIPS)
def test_versions_of_blocks(card: str) -> None:
  computer, chip = make(card, [card], 0, True), CHIPS[card]
  for block, version in ((11, chip.gc), (42, chip.sdma), (108, chip.nbif)):
    folder = f"/sys/class/drm/renderD128/device/ip_discovery/die/0/{block}/0"
    assert tuple(int(computer.read_text(f"{folder}/{name}")) for name in ("major", "minor", "revision")) == version
  assert computer.exists("/sys/class/drm/renderD128/device/current_compute_partition") == (chip.xccs > 1)
