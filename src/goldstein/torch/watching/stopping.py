"""When to stop training: the gradient has become small for good, and the loss has fallen."""

from __future__ import annotations

import math
from collections.abc import Sequence

from goldstein.errors import InputError
from goldstein.torch.watching.observation import Observation


class GoldsteinStopping:
    """Stop when eps, relative to the first gradient, stayed small.

    A network of dead units is stationary too, so training is never stopped by this at a loss that
    is not below the first.

    Parameters
    ----------
    rel_eps : float
        Stop at this share of the norm of the first gradient.
    patience : int
        So many looks in a row must agree.

    Examples
    --------
    >>> import torch, goldstein.torch
    >>> model = torch.nn.Linear(1, 1)
    >>> data = [(torch.ones(8, 1), torch.zeros(8, 1))]
    >>> optimizer = torch.optim.SGD(model.parameters(), 0.2)
    >>> monitor = goldstein.torch.Monitor(model, torch.nn.MSELoss(), data, delta=1e-4,
    ...                                   share=float("inf"),
    ...                                   stopping=goldstein.torch.GoldsteinStopping(1e-2))
    >>> for epoch in range(100):
    ...     optimizer.zero_grad()
    ...     torch.nn.functional.mse_loss(model(data[0][0]), data[0][1]).backward()
    ...     optimizer.step()
    ...     _ = monitor.update(epoch)
    ...     if monitor.should_stop:
    ...         break
    >>> epoch < 50
    True
    """

    def __init__(self, rel_eps: float, patience: int = 3) -> None:
        if not (math.isfinite(rel_eps) and rel_eps > 0.0):
            raise InputError(f"rel_eps = {rel_eps} must be a positive number, such as 1e-3.")
        if isinstance(patience, bool) or not isinstance(patience, int) or patience < 1:
            raise InputError(f"patience = {patience!r} must be a positive integer.")
        self.rel_eps = rel_eps
        self.patience = patience

    def reached(self, history: Sequence[Observation]) -> bool:
        """Decide from all looks so far."""
        last = history[-self.patience :]
        if len(last) < self.patience or len(history) < 2:
            return False
        return all(
            seen.relative_eps <= self.rel_eps and seen.loss < history[0].loss for seen in last
        )
