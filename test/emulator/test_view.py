"""Words of registers as text."""
from tinyhw.emulator.view import FORMATS, by_lane

def test_words() -> None:
  found = {name: show(0xbf803c00) for name, show in FORMATS.items()}
  assert found == {"x32": "0xbf803c00", "u32": "3212852224", "i32": "-1082115072", "f32": "-1.00183", "f16": "1,-1.875"}
  assert FORMATS["f32"](0x7fc00000) == "nan" and FORMATS["f16"](0x7c00) == "inf,0"

def test_lanes_have_columns_of_one_width() -> None:
  assert by_lane("v12", [str(n) for n in range(5, 15)]) == ["v12:    0  5  6  7  8  9 10 11 12", "        8 13 14"]
