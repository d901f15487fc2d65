"""The command line in this process: prompts, conversations, errors."""
import inspect
import io

import pytest
from formats.gguf_models import Q8_0, TOKENIZER, VOCAB, Model

from test.helpers import ENGINES, on
from tinyhw import Tensor
from tinyhw.errors import FileFormatError
from tinyhw.llm import benchmark, cli
from tinyhw.llm.packed import PackedMatrix
from tinyhw.llm.weights import Blocks

@pytest.fixture(scope="module")
def path(tmp_path_factory):
  found = tmp_path_factory.mktemp("llm") / "tiny.gguf"
  found.write_bytes(Model("qwen2").file(**TOKENIZER))
  return str(found)

@pytest.fixture(autouse=True)
def device():
  with on([name for name in ENGINES if name != "interpreter"][0]): yield

def run(*arguments, lines=""):
  out = io.StringIO()
  status = cli.main([str(a) for a in arguments], io.StringIO(lines), out)
  return status, out.getvalue()

def said(path, ids, count):
  model, tok, _ = cli.load(path)
  found = [token for token, _ in zip(model.generate(ids), range(count))]
  return tok.decode(found[:found.index(63)] if 63 in found else found)

def test_prompts(path):
  """Answer a prompt as a chat, or continue it unchanged."""
  _, tok, template = cli.load(path)
  assert template.name == "chatml" and isinstance(tok, cli.SimpleTokenizer)
  ids = template.encode([{"role": "system", "content": "S"}, {"role": "user", "content": "Hi"}])
  assert run("-m", path, "-p", "Hi", "--system", "S", "--max_tokens", 6, "--warmup") == (0, said(path, ids, 6) + "\n")
  assert run("-m", path, "-p", "Hi", "--raw", "--max_tokens", 6, "--max_context",
             20) == (0, said(path, tok.encode("Hi"), 6) + "\n")

def test_a_conversation(path):
  status, out = run("-m", path, "--max_tokens", 2, "--chat_format", "chatml", lines="a\nb\n")
  _, _, template = cli.load(path)
  assert cli.load(path, chat_format="gemma")[2].name == "gemma"
  first = said(path, template.encode([{"role": "user", "content": "a"}]), 2)
  second = said(path,
                template.encode([{"role": r, "content": c} for r, c in (("user", "a"), ("assistant", first),
                                                                        ("user", "b"))]), 2)
  assert (status, out) == (0, f"{first}\n{second}\n")

def test_draws_come_again(path):
  draws = [run("-m", path, "-p", "a", "--raw", "--temperature", 3, "--seed", seed, "--max_tokens", 10)[1]
           for seed in (1, 1, 2)]
  assert draws[0] == draws[1] != draws[2]

@pytest.mark.parametrize("options, exact, realize", [((), False, False), (("--exact",), True, False),
                                                     (("--realize",), False, True)], ids=str)
def test_options_of_parameters(path, options, exact, realize, monkeypatch):
  """They reach the model."""
  given, plain = [], cli.Transformer.from_gguf
  def from_gguf(*arguments, **named):
    given.append(inspect.signature(plain).bind(*arguments, **named).arguments)
    return plain(*arguments, **named)
  monkeypatch.setattr(cli.Transformer, "from_gguf", staticmethod(from_gguf))
  assert run("-m", path, "-p", "Hi", "--raw", "--max_tokens", 1, *options)[0] == 0
  (found,) = given
  assert (found.get("exact", False), found.get("realize", False)) == (exact, realize)

def test_quantized_parameters_are_packed_unless_they_are_to_be_exact(tmp_path):
  path = tmp_path / "q.gguf"
  path.write_bytes(Model("qwen2", Q8_0).file(**TOKENIZER))
  kinds = [type(cli.load(path, exact=exact)[0].blk[0].ffn.gate.weight) for exact in (False, True)]
  assert kinds == [PackedMatrix, Blocks]

def test_benchmark(path, monkeypatch):
  monkeypatch.setattr(benchmark, "SUM_BYTES", 1 << 16)
  status, out = run("-m", path, "--benchmark", 3)
  first, *rest = out.splitlines()
  assert status == 0 and first.startswith("3 tokens in ") and first.endswith("tokens/s")
  assert rest[0].startswith("the sum of ") and rest[-1].startswith("slowest: ")

def test_a_template_that_is_not_known_is_told(tmp_path, capsys):
  path = tmp_path / "t.gguf"
  path.write_bytes(Model("qwen2").file(**TOKENIZER, **{"tokenizer.chat_template": "{{ x }}"}))
  assert run("-m", path, "-p", "a", "--max_tokens", 1)[0] == 0
  assert "chat template is not known; chatml is used" in capsys.readouterr().err

def test_what_cannot_be_done(path, tmp_path, capsys):
  other = tmp_path / "other.gguf"
  other.write_bytes(b"GGUF")
  for arguments, why in ((("-m", tmp_path / "none.gguf", "-p", "a"), "there is no file"),
                         (("-m", other), "no whole GGUF file"), (("-m", tmp_path), "is a folder"),
                         (("-m", path, "-p", "a" * 100), "the context 48"),
                         (("-m", path, "-p", "é"), "no token for the byte"),
                         (("-m", path, "--serve", "0", "--host", "no.such.host.invalid"), "cannot be opened")):
    assert run(*arguments)[0] == 1
    assert why in capsys.readouterr().err

def test_wrong_options(capsys):
  for arguments, why in (((), "--model"), (("-m", "x", "--max_tokens", "0"), "invalid whole number above 0"),
                         (("-m", "x", "--serve", "99999"), "invalid port"),
                         (("-m", "x", "--temperature", "-1"), "invalid number from 0 on"),
                         (("-m", "x", "--chat_format", "y"), "invalid choice")):
    with pytest.raises(SystemExit) as end: run(*arguments)
    assert end.value.code == 2 and why in capsys.readouterr().err

def test_more_tokens_than_the_model_knows():
  more = {"tokenizer.ggml.tokens": [*TOKENIZER["tokenizer.ggml.tokens"], "x"],
          "tokenizer.ggml.token_type": [1] * (VOCAB + 1)}
  data = Model("qwen2").file(**TOKENIZER | more)
  with pytest.raises(FileFormatError, match="names 65 tokens"): cli.load(Tensor(data, dtype="uint8"))

def test_text_that_the_terminal_does_not_know(path):
  out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
  assert cli._say(iter(["é", "a"]), out) == "éa"
  out.flush()
  assert out.buffer.getvalue() == b"?a\n"
