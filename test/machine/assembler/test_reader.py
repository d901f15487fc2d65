"""Tokens, positions and numbers of a text."""
import pytest

from tinyhw.machine.assembler.reader import TextReader, tokens

def test_tokens_and_their_operands() -> None:
  found = tokens("{ v0.4s, v1.4s }[1], [x0, #-8]!, .loop")
  assert [str(t) for t in found] == ["{", "v0.4s", ",", "v1.4s", "}", "[", "1", "]", ",", "[", "x0", ",", "#", "-",
                                     "8", "]", "!",
                                     ",", ".loop"]
  assert [t.position for t in found if t in ("1", "x0", ".loop")] == [1, 2, 3]

@pytest.mark.parametrize("text,number", [("#5", 5), ("-3", -3), ("#0x1F", 31), ("#-0.5", -0.5), ("#1e-3", 0.001),
                                         ("+4", 4), ("x0", None),
                                         ("#", None)])
def test_numbers(text: str, number: float | None) -> None:
  reader = TextReader(tokens(text))
  assert reader.number() == number and (number is not None or reader.at == 0)

def test_a_refusal_says_operand_and_text() -> None:
  reader = TextReader(tokens("x0, #70000"))
  reader.at = 2
  reader.number()
  error = reader.refuse("an integer in 0..4095", True, 2)
  assert error.message == "operand 2 wants an integer in 0..4095, got #70000" and (error.at, error.close) == (2, True)
  assert TextReader([]).refuse("x0").message == "operand 1 wants x0, got the end of the line"
