"""dqn.py in PyTorch."""
import random
from collections.abc import Iterator

import samples
import torch
import torch.nn.functional as F
from torch import Tensor, nn

BATCH, HIDDEN, DISCOUNT, EXPLORATION, COPY_EVERY, MEMORY = 64, 128, 0.99, 0.3, 10, 5000

class QNetwork(nn.Module):
  def __init__(self) -> None:
    super().__init__()
    self.layer1, self.layer2, self.head = nn.Linear(4, HIDDEN), nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, 2)
  def forward(self, x: Tensor) -> Tensor: return self.head(F.relu(self.layer2(F.relu(self.layer1(x)))))

def training(jit: bool = True) -> Iterator[float]:
  network, target = QNetwork(), QNetwork()
  for net in (network, target):
    samples.initialize(net.state_dict(), lambda p, values: p.copy_(torch.tensor(values).reshape(p.shape)))
  optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)

  @torch.no_grad()
  def act(state: Tensor) -> Tensor: return network(state).argmax(dim=1)

  def learn(states: Tensor, actions: Tensor, rewards: Tensor, following: Tensor, alive: Tensor) -> Tensor:
    with torch.no_grad(): best = target(following).max(dim=1).values
    wanted = rewards + DISCOUNT * best * alive
    found = network(states).gather(1, actions.unsqueeze(1)).squeeze(1)
    loss = F.huber_loss(found, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss

  game, rng = samples.CartPole(), random.Random("dqn")
  memory: list[tuple[list[float], int, float, list[float], float]] = []
  state, steps = game.reset(), 0
  while True:
    explore = len(memory) < BATCH or rng.random() < EXPLORATION
    action = rng.randrange(2) if explore else int(act(torch.tensor([state])).item())
    following, reward, fallen = game.step(action)
    memory.append((state, action, reward, following, 1.0 - fallen))
    if len(memory) > MEMORY: memory.pop(0)
    state = game.reset() if fallen else following
    if len(memory) < BATCH: continue
    if steps % COPY_EVERY == 0: target.load_state_dict(network.state_dict())
    states, actions, rewards, nexts, alive = zip(*rng.sample(memory, BATCH))
    yield learn(torch.tensor(states), torch.tensor(actions), torch.tensor(rewards), torch.tensor(nexts),
                torch.tensor(alive)).item()
    steps += 1

if __name__ == "__main__": samples.main(training)
