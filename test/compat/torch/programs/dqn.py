"""Deep Q-learning on a corridor: replay memory, a target network, epsilon-greedy actions, smooth L1, soft updates."""
from collections import deque, namedtuple
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))

class ReplayMemory:
  def __init__(self, capacity, rng): self.memory, self.rng = deque([], maxlen=capacity), rng
  def push(self, *args): self.memory.append(Transition(*args))
  def sample(self, batch_size): return self.rng.sample(self.memory, batch_size)
  def __len__(self): return len(self.memory)

class DQN(nn.Module):
  def __init__(self, n_observations=4, n_actions=2):
    super(DQN, self).__init__()
    self.layer1 = nn.Linear(n_observations, 32)
    self.layer2 = nn.Linear(32, 32)
    self.layer3 = nn.Linear(32, n_actions)

  def forward(self, x):
    x = F.relu(self.layer1(x))
    x = F.relu(self.layer2(x))
    return self.layer3(x)

def build(): return {"policy": DQN()}

def observe(place): return [place / 5.0, (place * place) / 25.0, float(place % 2), 1.0]

def train(models):
  rng = random.Random(5)
  device = torch.device("cpu")
  policy_net = models["policy"].to(device)
  target_net = DQN().to(device)
  target_net.load_state_dict(policy_net.state_dict())
  optimizer = optim.AdamW(policy_net.parameters(), lr=1e-2, amsgrad=True)
  memory = ReplayMemory(64, rng)
  place = 2
  state = torch.tensor(observe(place), dtype=torch.float32, device=device).unsqueeze(0)
  for _ in range(20):
    if rng.random() > 0.5:
      with torch.no_grad(): action = policy_net(state).max(1).indices.view(1, 1)
    else: action = torch.tensor([[rng.randrange(2)]], device=device, dtype=torch.long)
    place += 1 if action.item() == 1 else -1
    reward = torch.tensor([1.0 if place == 5 else -0.1], device=device)
    done = place in (0, 5)
    next_state = None if done else torch.tensor(observe(place), dtype=torch.float32, device=device).unsqueeze(0)
    memory.push(state, action, next_state, reward)
    if done: place = 2
    state = torch.tensor(observe(place)).unsqueeze(0) if done else next_state
    if len(memory) < 16: continue
    batch = Transition(*zip(*memory.sample(8)))
    non_final_mask = torch.tensor(tuple(map(lambda s: s is not None, batch.next_state)), device=device,
                                  dtype=torch.bool)
    non_final_next_states = torch.cat([s for s in batch.next_state if s is not None])
    state_batch, action_batch, reward_batch = torch.cat(batch.state), torch.cat(batch.action), torch.cat(batch.reward)
    state_action_values = policy_net(state_batch).gather(1, action_batch)
    next_state_values = torch.zeros(8, device=device)
    with torch.no_grad(): next_state_values[non_final_mask] = target_net(non_final_next_states).max(1).values
    expected = (next_state_values * 0.99) + reward_batch
    loss = nn.SmoothL1Loss()(state_action_values, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    target_net_state_dict, policy_net_state_dict = target_net.state_dict(), policy_net.state_dict()
    for key in policy_net_state_dict:
      target_net_state_dict[key] = policy_net_state_dict[key] * 0.05 + target_net_state_dict[key] * 0.95
    target_net.load_state_dict(target_net_state_dict)
    yield loss.item()
