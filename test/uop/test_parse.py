"""Text that is no graph is refused with the line and the problem. test_text.py tests accepted text."""
import pytest

from tinyhw.errors import ParseError
from tinyhw.uop.text import parse

@pytest.mark.parametrize(("text", "message"), [
  ("", "line 1: empty"),
  ("u0 = CONST(int32, arg=1", "line 1"),
  ("u0 = CONST(int32, arg=1)\nu1 = FROB(int32, u0)", "line 2: no operation is named FROB"),
  ("u0 = CONST(int31, arg=1)", "line 1: unknown dtype 'int31'"),
  ("u0 = NEG(int32, u1)", "line 1: unknown name u1"),
  ("u0 = NEG(int32, 3)", "line 1: expected the name of a node, not 3"),
  ("u0 = CONST(int32, value=1)", "line 1: a node has arg= and tag=, not value"),
  ("u0 = CONST(int32, arg=Frob.x)", "line 1: Frob is not known here; import the module that defines it"),
  ("u0 = CONST(int32, arg=Ops.FROB)", "line 1: Ops has no FROB"),
  ("u0 = CONST(int32, arg=1 + 2)", "line 1: 1 \\+ 2 is no type"),
  ("u0 = 3", "line 1: a node is written OP"),
  ("for x in y: pass", "line 1: neither a node nor a program"),
  ("Prgrm(name='x')", "line 1: Prgrm is not known here"),
])
def test_refusals(text: str, message: str) -> None:
  with pytest.raises(ParseError, match=message): parse(text)

def test_nothing_is_executed() -> None:
  with pytest.raises(ParseError): parse("u0 = CONST(int32, arg=__import__('os').getcwd())")
