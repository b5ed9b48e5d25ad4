# SPDX-License-Identifier: GPL-2.0-or-later
"""For tests that compare a training with one of bsp: models, the batches of each rank, and a test loss."""

import json
import statistics

import torch

#: A batch's 64 numbers; the class is which of the first eight is the largest.
FEATURES, CLASSES, BATCH = 64, 8, 16


class Transformer(torch.nn.Module):
    """Two layers of 32 features; a batch's 64 numbers are eight tokens of eight."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Linear(8, 32)
        self.position = torch.nn.Parameter(torch.randn(8, 32) * 0.1)
        self.layers = torch.nn.ModuleList(torch.nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True) for _ in range(2))
        self.head = torch.nn.Linear(8 * 32, CLASSES)

    def forward(self, x):
        x = self.embed(x.view(-1, 8, 8)) + self.position
        for layer in self.layers:
            x = layer(x)
        return self.head(x.flatten(1))


def convolutions():
    """A batch's 64 numbers are an image of 8 by 8 pixels."""
    return torch.nn.Sequential(torch.nn.Unflatten(1, (1, 8, 8)), torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.ReLU(),
                               torch.nn.Conv2d(8, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(),
                               torch.nn.Linear(16 * 64, CLASSES))


def dense():
    return torch.nn.Sequential(torch.nn.Linear(FEATURES, 50), torch.nn.Tanh(), torch.nn.Linear(50, 300), torch.nn.Tanh(),
                               torch.nn.Linear(300, CLASSES))


MODELS = {"dense": dense, "transformer": Transformer, "convolutions": convolutions}


def make(name, seed):
    """The model @name; @seed: of its first parameters."""
    torch.manual_seed(seed)
    return MODELS[name]()


def batch(number, rank, seed=0):
    """Inputs and classes of batch @number of @rank.  @seed: of the data set; negative numbers are the test set, which
    all data sets have in common."""
    g = torch.Generator().manual_seed((1 << 40) - number if number < 0 else (seed << 32) + 64 * number + rank)
    x = torch.randn(BATCH, FEATURES, generator=g)
    return x, x[:, :CLASSES].argmax(1)


def loss(model, number, rank, seed=0):
    x, y = batch(number, rank, seed)
    return torch.nn.functional.cross_entropy(model(x), y)


def test_loss(module):
    """Mean over batches that no rank trains with: equal models have equal ones."""
    with torch.no_grad():
        return sum(loss(module, -1 - i, 0).item() for i in range(64)) / 64


class Training:
    """Clipping, momentum, and a scheduler that halves the rate four times in @rounds."""

    def __init__(self, ddp, rounds):
        self.ddp = ddp
        self.opt = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.opt, rounds // 5, 0.5)

    def step(self):
        torch.nn.utils.clip_grad_norm_(self.ddp.parameters(), 0.5)
        self.opt.step()
        self.scheduler.step()
        self.opt.zero_grad()


def noise_save(path, name, every):
    """@every: test losses of trainings of model @name with bsp, each with another seed: of all ranks, every[False], and of the
    ranks that are always in time, every[True]."""
    with open(f"{path}/bsp-{name}.json", "w", encoding="ascii") as f:
        json.dump([every[False], every[True]], f)


def within_noise(path, name, losses):
    """@losses: those with seeds 0, 1, ...  Returns whether their mean is at most two standard deviations (between seeds) above
    that of bsp with the ranks that are in time and these seeds, and the figures as text."""
    def figures(of):
        return f"{statistics.mean(of):.4f}, standard deviation {statistics.stdev(of):.4f} of {len(of)} seeds"
    with open(f"{path}/bsp-{name}.json", encoding="ascii") as f:
        every, in_time = json.load(f)
    found = statistics.mean(losses)
    return found <= statistics.mean(in_time[:len(losses)]) + 2 * statistics.stdev(in_time), \
        f"test loss {found:.4f} of {len(losses)} seeds; bsp of three ranks {figures(in_time)}; of four {figures(every)}"
