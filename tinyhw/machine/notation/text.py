"""Assembly text, the part that all ISAs share: lines, comments, operands, integers, and the driver of the `asm` and
`disasm` commands.

An ISA's syntax.py defines the form of its operands. Mistakes raise ParseError, EncodeError or DecodeError without a
line number, which `translate` adds.
"""
from __future__ import annotations
from typing import TextIO
from collections.abc import Callable, Iterable, Iterator, Sequence

from tinyhw.errors import ParseError, TinyError

OPENING, CLOSING = "([{<", ")]}>"

def strip_comment(line: str) -> str:
  """The line without comment (# or ;) and surrounding blanks."""
  for mark in "#;":
    at = line.find(mark)
    if at >= 0: line = line[:at]
  return line.strip()

def ascii_only(text: str) -> str:
  """Return the text unless it has a character beyond ASCII, which Python could take for a digit or letter.

  Raises ParseError if there is one.
  """
  strange = next((c for c in text if not c.isascii()), "") if not text.isascii() else ""
  if strange: raise ParseError(f"{strange!r} (U+{ord(strange):04X}) is not ASCII, in which instructions are written")
  return text

def none_missing(operands: list[str]) -> list[str]:
  """Return the operands. Raises ParseError if there is nothing between two commas, or after the last one."""
  if "" not in operands: return operands
  at = operands.index("")
  raise ParseError(f"operand {at + 1} is missing: nothing stands {'before' if at < len(operands) - 1 else 'after'} a "
                   f"comma")

def split_operands(text: str) -> list[str]:
  """Split at commas outside of brackets: "v0, s[0:1], [a, b]" -> three operands.

  Raises ParseError if one of them is missing.
  """
  if not text.strip(): return []
  parts, depth, start = [], 0, 0
  for i, c in enumerate(text):
    if c in OPENING: depth += 1
    elif c in CLOSING: depth -= 1
    elif c == "," and depth <= 0:
      parts.append(text[start:i].strip())
      start = i + 1
  return none_missing([*parts, text[start:].strip()])

def parse_integer(text: str) -> int | None:
  """Parse 12, -0x1f, 0b101 or 1fh. None if the text is no integer."""
  text = text.strip().replace("_", "")
  sign, body = 1, text
  while body[:1] in ("+", "-"):
    if body[0] == "-": sign = -sign
    body = body[1:].lstrip()
  if not body[:1].isdigit() or not body.isascii(): return None
  if body[-1] in "hH" and body[:2].lower() != "0x": body = "0x" + body[:-1]
  try: return sign * int(body, 0 if body[:1] == "0" and body[1:2].lower() in ("x", "b", "o") else 10)
  except ValueError: return None

def parse_bytes(text: str) -> bytes | None:
  """Parse bytes in hex, with or without blanks, commas and 0x. None if the text has another form."""
  words = text.replace(",", " ").replace("[", " ").replace("]", " ").split()
  digits = "".join(("0" * (len(w) % 2) + w[2:]) if w[:2].lower() == "0x" else w for w in words)
  try: return bytes.fromhex(digits)
  except ValueError: return None

def show_bytes(code: bytes) -> str:
  """Two digits a byte, in memory order."""
  return code.hex(" ")

def one_of(words: Sequence[str]) -> str:
  """List alternatives: "a", "a or b", "a, b or c", each once."""
  unique = list(dict.fromkeys(words))
  return unique[0] if len(unique) == 1 else f"{', '.join(unique[:-1])} or {unique[-1]}"

def statements(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
  """Yield (line number from 1, text) of the lines that are not blank without their comment."""
  for number, line in enumerate(lines, 1):
    text = strip_comment(line)
    if text: yield number, text

def translate(lines: Iterable[str], one: Callable[[str], str], output: TextIO, errors: TextIO) -> int:
  """Translate every statement to one line of output.

  A refused line is reported as "line N: reason". Return the exit status, 0 or 1.
  """
  status = 0
  for number, text in statements(lines):
    try: output.write(one(text) + "\n")
    except TinyError as e:
      errors.write(f"line {number}: {e.message}\n")
      status = 1
  return status
