"""Tables of words."""
from tinyhw.isa.arm64.table import words

def test_prefetches_have_their_codes() -> None:
  """Type, level and policy are bits 4:3, 2:1 and 0."""
  table = words.TABLES["prefetch"].words
  assert [table.index(w) for w in ("pldl1keep", "pldl2strm", "plil1keep", "pstl3strm")] == [0, 3, 8, 21]
  assert words.TABLES["svepref"].words.index("pstl1keep") == 8

def test_conditions_and_their_opposites_differ_in_the_last_bit() -> None:
  same, other = words.TABLES["cond"].words, words.TABLES["opposite"].words
  assert all(same[n ^ 1] == other[n] for n in range(14)) and len(other) == 14

def test_defaults() -> None:
  assert [(words.TABLES[n].words[words.TABLES[n].default]) for n in ("barrier", "pattern", "shift")] == ["sy", "all",
                                                                                                         "lsl"]

def test_numbers() -> None:
  assert words.numbers("A 1,2  B 3") == {"A": (1, 2), "B": (3,)}
  assert words.numbers(words.SYSTEM)["CTR_EL0"] == (3, 3, 0, 0, 1)
