"""The grammar of kernels."""
import pytest

from tinyhw.emulator.metal.parse import TypeName, parse
from tinyhw.emulator.metal.words import PRAGMA, SourceError
from test.emulator.metal.conftest import kernel_of

def test_a_kernel() -> None:
  helper = "inline int twice(int a) { return a + a; }\n"
  body = "for (int i = 0; i < 4; i++) { if (i < 2) out[i] = twice(x[i]) + 1 * 2; }"
  first, kernel = parse(kernel_of(body, helpers=helper))
  assert first.result == TypeName("int") and kernel.result is None and first.name == "twice"
  assert kernel.arguments[0].type == TypeName("int", "device", "*") and kernel.arguments[2].attribute == ("buffer", 2)
  loop = kernel.body[0]
  assert (loop.kind, loop.body[0].kind, loop.body[0].body[0].kind) == ("for", "if", "assign")
  value = loop.body[0].body[0].parts[1]
  assert value.text == "+" and value.parts[1].text == "*" and value.parts[0].kind == "call"

@pytest.mark.parametrize(("body", "words"), [
  ("goto end;", "program_source:5: error: expected '=', found 'end'"), ("double d = 1.0f;", "expected '=', found 'd'"),
  ("if (lane < 2u) { } else { }", "else is not in the subset"), ("while (true) { }", "expected '=', found '{'"),
  ("int a = ;", "';' begins no expression"), ("int a = 1", "expected ';', found '}'"),
  ("for (int i = 0; i <= 4; i++) { }", "expected '<', found '<='"), ("out[0] += 1;", "expected '=', found"),
  ("float3 a = 1;", "expected '=', found 'a'"), ("int a = as_type<int3>(1);", "unknown type name 'int3'"),
  ("int a = as_type<quad>(1);", "unknown type name 'quad'"), ("texture2d t = 1;", "expected '=', found 't'")])
def test_refusals(body: str, words: str) -> None:
  with pytest.raises(SourceError, match=words): parse(kernel_of(body))

def test_only_functions() -> None:
  with pytest.raises(SourceError, match="'class' begins no function"): parse(f"{PRAGMA}\nclass A {{ }};")
