"""The reader of C headers: macros, enumerations, layouts.

Random structures are compared with a C compiler, if one is installed.
"""
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from tinyhw.autogen.c_reader import HeaderError, read

def fields(text: str, name: str = "s") -> list[tuple[str, int, int]]:
  return [(m.name, m.offset, m.size) for m in read(text).structs[name].flat()]

def test_macros_and_expressions() -> None:
  header = read("""
    #define ONE 1 /* a comment */
    #define TWO (ONE << 1)   // another
    #define LONG \\
      (TWO | 0x10UL)
    #define MASK(bits) ((1U << (bits)) - 1)
    #define BOTH(a, b) (MASK(a) | (b))
    #define USED BOTH(4, ONE << 8)
    #define CHOICE (ONE > 0 ? 'K' : 7)
    #define NEGATIVE -010
    #define TEXT "text /* no comment */"
    #define CAST ((unsigned int)5 / 2 * 3 % 4)
    #define LOGIC (!ONE || (2 == 2 && ~0 < 0))
    #define EMPTY
  """)
  names = ("LONG", "USED", "CHOICE", "NEGATIVE", "CAST", "LOGIC")
  assert [header.value(name) for name in names] == [0x12, 0x10F, ord("K"), -8, 2, 1]
  for name, words in (("TEXT", "is not declared here"), ("EMPTY", "a value is expected"),
                      ("NOWHERE", "NOWHERE is not declared here")):
    with pytest.raises((HeaderError, ValueError), match=words): header.value(name)

@pytest.mark.parametrize("text, words", [
  ("#define A B\n#define B A\n", "macros contain each other"), ("#define A (1 / 0)\n", "a division by 0"),
  ("#define A MASK\n", "MASK is not declared"),
  ("#define F(x, y) x\n#define A F(1)\n", "F takes 2 arguments"), ("#define A 1 2\n", "'2' is left over"),
  ("#define A (1\n", r"\) is expected")])
def test_expressions_that_have_no_value(text: str, words: str) -> None:
  with pytest.raises(HeaderError, match=words): read(text).value("A")

def test_conditions() -> None:
  header = read("""
    #ifndef GUARD
    #define GUARD
    #ifdef __cplusplus
    extern "C" {
    #endif
    #if defined(GUARD) && VERSION >= 3
    #define A 1
    #elif defined GUARD
    #define A 2
    #else
    #define A 3
    #endif
    #if 0
    #define A 4
    #else
    #define B 5
    #undef GONE
    #endif
    #endif
  """)
  assert (header.value("A"), header.value("B")) == (2, 5)
  for text, words in (("#if 1\n", "#if without #endif"), ("#endif\n", "#endif without"), ("#else\n", "#else without"),
                      ("#pragma pack(1)\n", "pragma pack")):
    with pytest.raises(HeaderError, match=words): read(text)

def test_enumerations() -> None:
  header = read("enum color { RED, GREEN = 5, BLUE, LAST = BLUE << 1, };\nenum { ALONE = 'a' };\ntypedef enum { X = 3 "
                "} kind;\n"
                "struct s { enum color c; kind k; };")
  assert [header.value(name) for name in ("RED", "GREEN", "BLUE", "LAST", "ALONE", "X")] == [0, 5, 6, 12, 97, 3]
  assert header.structs["s"].size == 8

def test_structures() -> None:
  text = """
    typedef unsigned long long word;
    struct inner { __u8 a; __u32 b[2][3]; };
    struct s { __u16 first, *pointer; struct inner one, many[2];
      union { word w; struct { __u32 low, high; }; } ; const char name[sizeof(word)]; };
  """
  assert fields(text) == [("first", 0, 2), ("pointer", 8, 8), ("one.a", 16, 1), ("one.b", 20, 24), ("many", 44, 56),
                          ("w", 104, 8), ("low", 104, 4),
                          ("high", 108, 4), ("name", 112, 8)]
  assert read(text).structs["s"].size == 120

def test_bit_fields() -> None:
  made = read("struct s { __u32 a : 3, b : 30; __u8 c : 4; __u32 : 0; __u32 d : 1; __u64 e : 40; };").structs["s"]
  assert [(m.name, m.offset * 8 + (m.bits or (0, 0))[0], (m.bits or (0, 0))[1]) for m in made.members] == [
    ("a", 0, 3), ("b", 32, 30), ("c", 64, 4), ("d", 96, 1), ("e", 128, 40)]
  assert (made.size, made.alignment) == (24, 8)

def test_packed_structures() -> None:
  body = "{ __u8 a; __u64 b; __u16 c; }"
  for text in (f"struct s {body} __attribute__((packed));", f"struct __attribute__((__packed__)) s {body};",
               f"struct s {body} __packed;"):
    assert fields(text) == [("a", 0, 1), ("b", 1, 8), ("c", 9, 2)] and read(text).structs["s"].size == 11

def test_calls() -> None:
  header = read("struct args { __u64 a; __u32 b; __u32 c; };\n#define MY_IOWR(nr, type) _IOWR('K', nr, type)\n"
                "#define CALL MY_IOWR(0x16, struct args)\n#define NONE _IO('K', 3)\n")
  number, struct = header.ioctl("CALL")
  assert (number == 3 << 30 | 16 << 16 | 0x4B << 8 | 0x16 and struct is header.structs["args"]
          and header.ioctl("NONE") == (0x4B03, None))

def test_headers_know_each_other() -> None:
  first = read("struct inner { __u32 a; };\n#define N 4\n")
  assert read("struct s { struct inner i[N]; };", first).structs["s"].size == 16

def test_functions_and_variables_are_passed_over() -> None:
  header = read("static inline int f(int x) { if (x) { return 1; } return 0; }\nextern int y;\ntypedef int "
                "(*callback)(void);\nstruct s { __u8 a; };")
  assert list(header.structs) == ["s"]

@pytest.mark.parametrize("text, words", [
  ("struct s { struct other o; };", "the structure other is not declared here"),
  ("struct s { unknown_t a; };", "the type unknown_t is not declared"),
  ("struct s { int a", "is expected, not the end"), ("struct s { int (*f)(int); };", "a pointer to a function"),
  ("struct s { int a; } @", "never") ])
def test_what_cannot_be_read(text: str, words: str) -> None:
  if words == "never": assert read(text).structs["s"].size == 4
  else:
    with pytest.raises(HeaderError, match=words): read(text)

def test_what_is_no_c() -> None:
  with pytest.raises(HeaderError, match="no token of C begins at"): read("struct s { int a; };\n\x01")

# **** random structures ****

TYPES = ("__u8", "__u16", "__u32", "__u64", "int", "char *")
SOURCE = """#include <stddef.h>
#include <stdio.h>
typedef unsigned char __u8; typedef unsigned short __u16; typedef unsigned int __u32; typedef unsigned long long __u64;
"""

@st.composite
def bodies(draw: st.DrawFn, depth: int = 0) -> tuple[str, list[str]]:
  """Draw members, and the paths of those with an address."""
  text, paths = "", list[str]()
  for i in range(draw(st.integers(1, 4))):
    name, kind = f"m{depth}{i}", draw(st.sampled_from(("plain", "array", "bits", "struct", "union") if depth < 2
                                                      else ("plain", "array", "bits")))
    if kind in ("struct", "union"):
      inner, below = draw(bodies(depth + 1))
      packed = draw(st.sampled_from(("", " __attribute__((packed))")))
      text += f"{kind} {{ {inner}}}{packed} {name}; "
      paths += [f"{name}.{path}" for path in below]
    elif kind == "bits":
      unit = draw(st.sampled_from((8, 16, 32, 64)))
      text += f"__u{unit} {name} : {draw(st.integers(1, unit))}; "
    else:
      text += f"{draw(st.sampled_from(TYPES))} {name}{f'[{draw(st.integers(1, 3))}]' if kind == 'array' else ''}; "
      paths.append(name)
  return text, paths

@settings(max_examples=12)
@given(st.lists(bodies(), min_size=12, max_size=12))
def test_layouts_are_those_of_a_c_compiler(tmp_path_factory: pytest.TempPathFactory,
                                           made: list[tuple[str, list[str]]]) -> None:
  compiler = next((path for path in map(shutil.which, ("cc", "gcc", "clang")) if path), None)
  if compiler is None: pytest.skip("no C compiler is installed")
  folder: Path = tmp_path_factory.mktemp("layouts")
  declared = "".join(f"struct s{i} {{ {text}}};\n" for i, (text, _) in enumerate(made))
  asked = [(i, path) for i, (_, paths) in enumerate(made) for path in paths]
  prints = "".join(f'printf("%zu\\n", offsetof(struct s{i}, {path}));' for i, path in asked)
  sizes = "".join(f'printf("%zu\\n", sizeof(struct s{i}));' for i in range(len(made)))
  (folder / "a.c").write_text(f"{SOURCE}{declared}int main(void) {{ {sizes}{prints} return 0; }}")
  subprocess.run([compiler, "-w", "-o", folder / "a", folder / "a.c"], check=True)
  wanted = list(map(int, subprocess.run([folder / "a"], check=True, capture_output=True, text=True).stdout.split()))
  header = read(declared)
  places = [{m.name: m.offset for m in header.structs[f"s{i}"].flat()} for i in range(len(made))]
  assert [header.structs[f"s{i}"].size for i in range(len(made))] + [places[i][path] for i, path in asked] == wanted
