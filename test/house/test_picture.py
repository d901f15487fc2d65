"""The picture of the layers is that of the imports."""
from __future__ import annotations
import re
from collections.abc import Iterator
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

def test_every_module_has_a_box_and_every_box_its_modules(monkeypatch: pytest.MonkeyPatch) -> None:
  assert picture.box_of("tinyhw.device_interface") == "device" and picture.box_of("tinyhw.files.mapped") == "base"
  for module in picture.FILES:
    if module not in (*picture.ENTRIES, *picture.ALIASES): picture.box_of(module)
  picture.check_words()
  with pytest.raises(AssertionError, match="name tinyhw/novel in one of them"): picture.box_of("tinyhw.novel.part")
  monkeypatch.setitem(picture.WORDS, "device", ("device allocator", ""))
  with pytest.raises(AssertionError, match="not there: .'allocator'"): picture.drawing()

Point = tuple[float, float]

def sampled(line: str) -> Iterator[Point]:
  """Points of a path of curves and straight lines, close to each other."""
  last: Point = (0, 0)
  for kind, text in re.findall("([MCL])([^MCL]+)", line):
    numbers = [float(word) for word in text.split()]
    points = [last, *zip(numbers[::2], numbers[1::2])]
    for n in range(101 if kind != "M" else 0):
      level = points
      while len(level) > 1:   # de Casteljau
        level = [(x0 + (x1 - x0) * n / 100, y0 + (y1 - y0) * n / 100)
                 for (x0, y0), (x1, y1) in zip(level, level[1:])]
      yield level[0]
    last = points[-1]

def covered(drawing: str) -> list[str]:
  """The arrows that have a point inside of a box."""
  root = ElementTree.fromstring(drawing)
  boxes = [tuple(float(box.attrib[name]) for name in ("x", "y", "width", "height"))
           for box in root.iter("{http://www.w3.org/2000/svg}rect")]
  lines = [one.attrib["d"] for one in root.iter("{http://www.w3.org/2000/svg}path") if "class" in one.attrib]
  assert len(boxes) == len(picture.WORDS) and len(lines) > len(boxes)
  return [line for line in lines
          if any(x < px < x + w and y < py < y + h for px, py in sampled(line) for x, y, w, h in boxes)]

def test_no_arrow_passes_under_a_box() -> None:
  assert not covered(picture.drawing())
  straight = re.sub(r'd="M(\S+ \S+?)C.* (\S+ \S+)"', r'd="M\1L\2"', picture.drawing())
  assert covered(straight), "the test sees an arrow that passes under a box"

def test_arrows_that_follow_are_left_out_and_circles_are_refused() -> None:
  assert picture.reduced({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"a": {"b"}, "b": {"c"}, "c": set()}
  assert picture.rows({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"a": 2, "b": 1, "c": 0}
  with pytest.raises(AssertionError, match="circle"): picture.reduced({"a": {"b"}, "b": {"a"}})

def test_boxes_that_are_opened_by_name_are() -> None:
  assert all(DRIVERS[name].startswith("tinyhw.drivers.") for name in ("CPU", "AMD", "NV"))
  files = (picture.ROOT / "drivers/linux/files.py").read_text(encoding="utf-8")
  assert '"tinyhw.emulator"' in files and "import_module" in files
