"""The picture of the layers is that of the imports."""
from __future__ import annotations
from xml.etree import ElementTree

import pytest

from test.house import picture
from tinyhw.device import DRIVERS

def test_the_picture_is_up_to_date() -> None:
  assert picture.PICTURE.read_text(encoding="utf-8") == picture.drawing(), "run python3 test/house/picture.py"

def test_it_is_well_formed_and_has_every_box() -> None:
  root = ElementTree.fromstring(picture.drawing())
  words = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
  assert all(line in words for _, line in picture.WORDS.values())

def test_arrows_that_follow_are_left_out_and_circles_are_refused() -> None:
  assert picture.reduced({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"a": {"b"}, "b": {"c"}, "c": set()}
  assert picture.rows({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"a": 2, "b": 1, "c": 0}
  with pytest.raises(AssertionError, match="circle"): picture.reduced({"a": {"b"}, "b": {"a"}})

def test_boxes_that_are_opened_by_name_are() -> None:
  assert all(DRIVERS[name].startswith("tinyhw.drivers.") for name in ("CPU", "AMD", "NV"))
  files = (picture.ROOT / "drivers/linux/files.py").read_text(encoding="utf-8")
  assert '"tinyhw.emulator"' in files and "import_module" in files
