"""Deep Q-learning: a network learns by trial to balance a pole. Source: Mnih et al. 2015."""
import random
from collections.abc import Iterator

import samples

from tinyhw import Tensor, TinyJit, nn

BATCH, HIDDEN, DISCOUNT, EXPLORATION, COPY_EVERY, MEMORY = 64, 128, 0.99, 0.3, 10, 5000

class QNetwork:
  def __init__(self) -> None:
    self.layer1, self.layer2, self.head = nn.Linear(4, HIDDEN), nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, 2)
  def __call__(self, x: Tensor) -> Tensor: return self.head(self.layer2(self.layer1(x).relu()).relu())

def training(jit: bool = True) -> Iterator[float]:
  network, target = QNetwork(), QNetwork()
  for net in (network, target):
    samples.initialize(nn.state.get_state_dict(net), lambda p, values: p.assign(Tensor(values).reshape(p.shape)))
  optimizer = nn.optim.Adam(nn.state.get_parameters(network), lr=1e-3)

  def act(state: Tensor) -> Tensor: return network(state).argmax(axis=1).realize()

  @Tensor.train()
  def learn(states: Tensor, actions: Tensor, rewards: Tensor, following: Tensor, alive: Tensor) -> Tensor:
    best = target(following).max(axis=1).detach()
    wanted = rewards + DISCOUNT * best * alive
    found = network(states).gather(1, actions.unsqueeze(1)).squeeze(1)
    error = (found - wanted).abs()
    loss = (error < 1).where(0.5 * error.square(), error - 0.5).mean()   # Huber's
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.realize()

  if jit: act, learn = TinyJit(act), TinyJit(learn)
  game, rng = samples.CartPole(), random.Random("dqn")
  memory: list[tuple[list[float], int, float, list[float], float]] = []
  state, steps = game.reset(), 0
  while True:
    explore = len(memory) < BATCH or rng.random() < EXPLORATION
    action = rng.randrange(2) if explore else int(act(Tensor([state])).item())
    following, reward, fallen = game.step(action)
    memory.append((state, action, reward, following, 1.0 - fallen))
    if len(memory) > MEMORY: memory.pop(0)
    state = game.reset() if fallen else following
    if len(memory) < BATCH: continue
    if steps % COPY_EVERY == 0: nn.state.load_state_dict(target, nn.state.get_state_dict(network), verbose=False)
    states, actions, rewards, nexts, alive = zip(*rng.sample(memory, BATCH))
    yield learn(Tensor(states), Tensor(actions), Tensor(rewards), Tensor(nexts), Tensor(alive)).item()
    steps += 1

if __name__ == "__main__": samples.main(training)
