"""Watching a training run: how stationary is the model now, at a bounded cost."""

from goldstein.torch.watching.monitor import GoldsteinStopping, Monitor, Observation

__all__ = ["GoldsteinStopping", "Monitor", "Observation"]
