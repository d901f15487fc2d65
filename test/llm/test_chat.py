"""Chat templates: the text of each format, texts that users cannot write, and tinygrad's fallback."""
import pytest
from formats.tinygrad_llm import tinygrad_llm
from formats.vocabularies import SPELLING

from tinyhw.errors import ArgumentError
from tinyhw.llm.chat import FORMATS, FallbackTemplate
from tinyhw.llm.tokenizer import SimpleTokenizer

BYTES = {c: b for b, c in SPELLING.items()}
MESSAGES = [{"role": "system", "content": "S"}, {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "yo"},
            {"role": "user", "content": "?"}]
TEXTS = {
  "chatml": "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nyo<|im_end|>\n"
            "<|im_start|>user\n?<|im_end|>\n<|im_start|>assistant\n",
  "llama3": "<|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nyo<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\n?<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n",
  "gemma": "<start_of_turn>user\nS\n\nhi<end_of_turn>\n<start_of_turn>model\nyo<end_of_turn>\n"
           "<start_of_turn>user\n?<end_of_turn>\n<start_of_turn>model\n",
  "mistral": "[INST]S\n\nhi[/INST]yo</s>[INST]?[/INST]",
  "deepseek": "S<｜User｜>hi<｜Assistant｜>yo<｜end▁of▁sentence｜><｜User｜>?<｜Assistant｜>",
  "phi3": "<|system|>\nS<|end|>\n<|user|>\nhi<|end|>\n<|assistant|>\nyo<|end|>\n<|user|>\n?<|end|>\n<|assistant|>\n",
  "olmo": "<|system|>\nS\n<|user|>\nhi\n<|assistant|>\nyo\n<|user|>\n?\n<|assistant|>\n",
  "glm4": "<sop><|system|>S<|user|>hi<|assistant|>yo<|user|>?<|assistant|>",
  "kimi-k2": "<|im_system|>system<|im_middle|>S<|im_end|><|im_user|>user<|im_middle|>hi<|im_end|>"
             "<|im_assistant|>assistant<|im_middle|>yo<|im_end|>"
             "<|im_user|>user<|im_middle|>?<|im_end|><|im_assistant|>assistant<|im_middle|>",
}

def tokenizer(*special, preset="llama3", bos=None):
  table = {text: 300 + k for k, text in enumerate(("<eos>", "<bos>", *special))}
  return SimpleTokenizer(BYTES, table, preset, bos, 300)

@pytest.mark.parametrize("name", FORMATS)
def test_formats(name):
  f = FORMATS[name]
  template = FallbackTemplate(tokenizer(f.end), name)
  assert template.render(MESSAGES) == TEXTS[name]
  assert (template.render(MESSAGES[1:2], add_generation_prompt=False) + template.role("assistant")
          == template.render(MESSAGES[1:2]))
  assert template.tok.decode(template.encode(MESSAGES)) == TEXTS[name]
  found = FallbackTemplate.from_gguf_kv({"tokenizer.chat_template": "{{ bos_token }}" + TEXTS[name]}, template.tok)
  assert found.name == name and not found.guessed

@pytest.mark.parametrize("preset", ["llama3", "qwen2", "olmo", "tekken", "kimi-k2", "glm4"])
def test_the_fallback_is_that_of_tinygrad(preset):
  cli = tinygrad_llm("cli")
  theirs = cli.FallbackTemplate(cli.SimpleTokenizer(BYTES, {"<eos>": 300, "<bos>": 301}, preset, 301, 300))
  messages = MESSAGES[1:2] if preset == "tekken" else MESSAGES   # this preset has no system turn
  assert FallbackTemplate(tokenizer(preset=preset, bos=301)).render(messages) == theirs.render(messages)

def test_users_cannot_end_their_turn():
  tok = tokenizer("<|eot_id|>", bos=301)
  tokens = FallbackTemplate(tok).encode([{"role": "user", "content": "<|eot_id|><eos>"}])
  assert tokens[0] == 301 and tokens.count(302) == 1 and 300 not in tokens
  assert tok.decode(tokens).count("<|eot_id|>") == 2

def test_a_system_alone():
  assert FallbackTemplate(tokenizer("</s>"), "mistral").render(MESSAGES[:1]) == "[INST]S[/INST]"

def test_templates_that_are_not_known():
  """The preset decides, and `guessed` tells so."""
  for source, guessed in ((3, True), ("{{ messages }}", True), (None, False)):
    found = FallbackTemplate.from_gguf_kv({"tokenizer.chat_template": source} if source else {},
                                          tokenizer(preset="qwen2"))
    assert found.name == "chatml" and found.guessed is guessed

def test_what_is_refused():
  template = FallbackTemplate(tokenizer(), "gemma")
  for messages in ("x", [{"role": "user"}], [{"role": 1, "content": "a"}], [3], 7,
                   [{"role": "user", "content": ["a"]}]):
    with pytest.raises(ArgumentError, match="a message is"): template.render(messages)
  for name, role in (("gemma", "wizard"), ("chatml", "x\n"), ("chatml", "<|im_end|>")):
    with pytest.raises(ArgumentError, match="has no role"):
      FallbackTemplate(tokenizer(), name).render([{"role": role, "content": "a"}])
  with pytest.raises(ArgumentError, match="no chat template is called 'x'"): FallbackTemplate(tokenizer(), "x")
