"""Words of the language, and the lines of the preprocessor."""
import pytest

from tinyhw.emulator.metal.words import PRAGMA, SourceError, kept_lines, tokens

def test_tokens() -> None:
  found = tokens(f"{PRAGMA}\nint v1 = (3l)<<x[-1.5e+20f]; // comment")
  assert " ".join(token.text for token in found[:-1]) == "int v1 = ( 3l ) << x [ - 1.5e+20f ] ;"
  assert found[0].line == 2 and found[-1].kind == "end" and found[4].kind == "number"

@pytest.mark.parametrize(("source", "words"), [
  ("int v = 0x1p3f;", "program_source:2: error: '0x' is no number of C[+][+]14"),
  ("int v = 3q;", "'3q' is no number"), ("int $;", "'[$]' begins no word"),
  ("#define A 3", "'#define A 3' is not in the subset"), ("#endif", "#endif without #ifndef"),
  ("#ifndef A", "#ifndef without #endif")])
def test_refusals(source: str, words: str) -> None:
  with pytest.raises(SourceError, match=words): tokens(f"{PRAGMA}\n{source}")

def test_helpers_are_defined_once() -> None:
  text = f"{PRAGMA}\n" + "#ifndef HAS_f\n#define HAS_f\nf\n#endif\n" * 2
  assert kept_lines(text) == [(4, "f")]

def test_contraction_is_forbidden() -> None:
  with pytest.raises(SourceError, match="no line '#pragma METAL fp contract.off.'; products and sums would be"):
    tokens("int a;")
