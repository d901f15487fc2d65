"""Words of RISC-V operands."""
import pytest

from tinyhw.isa.riscv64.table import words

@pytest.mark.parametrize("text,code", [("e8, m1, tu, mu", 0), ("e32, m1, ta, ma", 0xd0), ("e64, m8, ta, mu", 0x5b),
                                       ("e16, mf4, tu, ma", 0x8e)])
def test_vector_types(text: str, code: int) -> None: assert words.vtype_text(code) == text

def test_reserved_vector_types_have_no_name() -> None:
  assert words.vtype_text(4) is None and words.vtype_text(0x20) is None and words.vtype_text(0x100) is None

def test_fences_and_rounding_modes() -> None:
  assert [words.ACCESSES[k] for k in (1, 2, 3, 8, 15)] == ["w", "r", "rw", "i", "iorw"]
  assert words.TABLES["rm"].words[7] == "dyn" and words.TABLES["exact"].default == 0
