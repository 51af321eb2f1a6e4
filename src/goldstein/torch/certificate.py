"""Certify the weights of a trained model, however it was trained."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from goldstein.api.certify_data import certify_data
from goldstein.certificates import GoldsteinCertificate
from goldstein.oracles.data_mean import Progress, Reduction
from goldstein.torch.data_oracle import DataOracle


def certify(
    model: torch.nn.Module,
    loss_fn: Callable[[Any, Any], Any],
    data: Iterable[Any],
    *,
    delta: float,
    eps: float = 0.0,
    seed: int = 0,
    max_calls: int | None = None,
    distributed: bool = False,
    reduction: Reduction = "mean",
    progress: Progress = False,
) -> GoldsteinCertificate:
    """Prove how stationary a trained model is, for the mean loss over all of `data`.

    A private copy is evaluated in float64 and in evaluation mode, batch by batch: the model is left
    alone, memory does not grow with the number of samples (data up to 256 MB are kept), and no
    graph is retained. Gradients are taken at random points near the weights only, never at the
    weights themselves, because automatic differentiation is wrong on kinks. A loss that depends on
    how the samples are batched, that differs when it is asked again, or that is computed in less
    than float64 is refused.

    Parameters
    ----------
    model : Module
    loss_fn : callable
        `loss_fn(output, target)`, a mean over the batch. Class weights and ignored targets of
        `torch.nn.CrossEntropyLoss` and the like count as if all data were one batch.
    data : iterable of batches
        A DataLoader or a list of pairs (input, target), of tuples (input, ..., target), or of
        dicts, of which the model gets what it takes and `loss_fn(output, batch)` all. Every pass
        must give the same samples, in any order.
    delta : float
        Radius of the ball around the weights, in the norm of all weights together.
    eps : float
        Stop as soon as this is reached; 0 asks for the smallest bound the budget allows.
    seed : int
    max_calls : int, optional
        Passes over the data. By default a dozen or two where the loss visibly falls nearby, and up
        to 600 where it does not.
    distributed : bool
        Every rank calls this with its own share of the data (nothing twice) and gets the same
        certificate, that of all the data. Differing replicas raise `DesynchronisedError`.
    reduction : {"mean", "sum"}
        What `loss_fn` returns for a batch; a sum over all data is divided by their number.
    progress : bool or callable
        Called with the number of passes made and the most there can be; True writes a line to a
        terminal.

    Returns
    -------
    GoldsteinCertificate
        Labelled `conditional`: autograd is trusted at the random points. `meta` records samples,
        dtype and mode. Verify it with ``certificate.verify(DataOracle(model, loss_fn, data))``.

    Examples
    --------
    >>> import torch, goldstein.torch
    >>> model = torch.nn.Linear(1, 1, bias=False, dtype=torch.float64)
    >>> _ = torch.nn.init.constant_(model.weight, 2.0)
    >>> data = [(torch.tensor([[1.0], [2.0]]), torch.tensor([[2.0], [4.0]]))]
    >>> certificate = goldstein.torch.certify(model, torch.nn.L1Loss(), data, delta=1e-3)
    >>> certificate.eps < 1e-12
    True
    """
    return certify_data(
        DataOracle(model, loss_fn, data, distributed, reduction),
        delta=delta,
        eps=eps,
        seed=seed,
        max_calls=max_calls,
        progress=progress,
    )
