"""What sysfs says of a core."""
from pathlib import Path

import pytest

from tinyhw.drivers.cpu import linux

@pytest.mark.parametrize("text,size", [("64K", 65536), ("1M", 1 << 20), ("512", 512), ("", 0), ("many", 0)])
def test_sizes(text: str, size: int) -> None: assert linux.size_of(text) == size

def test_caches_of_a_core(tmp_path: Path) -> None:
  """Instruction caches, and entries without a level, do not count."""
  for name, values in {"index0": ("1", "Data", "64K"), "index1": ("1", "Instruction", "32K"),
                       "index2": ("2", "Unified", "1M"), "index3": ("", "Unified", "32M")}.items():
    (tmp_path / "cache" / name).mkdir(parents=True)
    for file, text in zip(("level", "type", "size"), values): (tmp_path / "cache" / name / file).write_text(text + "\n")
  found = linux.LinuxProcessor("v", "b", 1, frozenset(), linux.caches_of(tmp_path))
  assert found.caches == {1: 65536, 2: 1 << 20} and found.cache_bytes == (65536, 1 << 20, 0)
  assert found.local_bytes == 1 << 19 and linux.caches_of(tmp_path / "absent") == {}

def test_the_auxiliary_vector_has_the_page_size() -> None:
  assert linux.auxiliary(6) in (4096, 16384, 65536)  # AT_PAGESZ
