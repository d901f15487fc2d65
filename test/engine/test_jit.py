"""The name that tinygrad's programs import."""
from tinyhw.capture import jit as capture
from tinyhw.engine import jit

def test_the_name_is_the_class_itself() -> None:
  assert jit.TinyJit is capture.TinyJit
