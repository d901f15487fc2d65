"""Reference counts, pools, messages."""
from collections.abc import Iterator

import pytest

from tinyhw.emulator.metal.objects import TABLE, ListThing, ObjectMistake, TextThing, ObjectWorld, signatures
from tinyhw.emulator.schedule import ActorScheduler

@pytest.fixture
def world() -> Iterator[ObjectWorld]:
  made = ObjectWorld(ActorScheduler(0), 13)
  made.add_class("NSString", TextThing)
  yield made

def test_the_table() -> None:
  found = signatures("NSString")["stringWithUTF8String:"]
  assert found == ("@", ("*",), False, True) and TABLE["NSObject"]["alloc"].owned and len(TABLE) == 36

def test_references(world: ObjectWorld) -> None:
  text = TextThing(world, "abc")
  assert world.send(text.handle, "retain", []) == text.handle and world.send(text.handle, "length", []) == 3
  for _ in range(2): world.send(text.handle, "release", [])
  for act in ("release", "UTF8String"):
    with pytest.raises(ObjectMistake, match=f"message {act}: NSString .* was released before"):
      world.send(text.handle, act, [])
  assert world.census() == {}

def test_pools(world: ObjectWorld) -> None:
  one, two = world.push(), world.push()
  handle = world.send(world.classes["NSString"].handle, "stringWithUTF8String:", ["x"])
  with pytest.raises(ObjectMistake, match="pools of a thread end in reverse order"): world.pop(one)
  world.pop(two)
  assert handle in world.dead and world.census() == {}
  world.pop(one)
  with pytest.raises(ObjectMistake, match="pools of a thread"): world.pop(one)
  with pytest.raises(ObjectMistake, match="NSString is autoreleased on a thread without a pool: it leaks"):
    world.send(world.classes["NSString"].handle, "stringWithUTF8String:", ["x"])

def test_holders_release(world: ObjectWorld) -> None:
  text = TextThing(world)
  things = ListThing(world, [text])
  text.drop()
  assert world.send(things.handle, "count", []) == 1 and world.send(things.handle, "objectAtIndex:", [0]) == text.handle
  with pytest.raises(ObjectMistake, match="objectAtIndex:1 of 1 objects; on a Mac the process ends"):
    world.send(things.handle, "objectAtIndex:", [1])
  things.drop()
  assert world.census() == {}

def test_wrong_messages(world: ObjectWorld) -> None:
  text = TextThing(world)
  for receiver, selector, words in ((text.handle, "commit", r"-\[NSString commit\]: unrecognized selector"),
                                    (0, "length", "message length to nil"), (77, "length", "0x4d is no object"),
                                    (world.classes["NSString"].handle, "length", r"\+\[NSString length\]: unrecogn"),
                                    (text.handle, "hash", "is not part of the virtual Metal")):
    with pytest.raises(ObjectMistake, match=words): world.send(receiver, selector, [])
