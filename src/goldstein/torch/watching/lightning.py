"""A callback of Lightning that watches a run with a `Monitor`."""

from typing import Any

from goldstein.extras import from_extra

with from_extra("LightningMonitor", "Lightning", "watch"):
    from lightning.pytorch import Callback

from goldstein.torch.watching.monitor import Monitor


class LightningMonitor(Callback):  # type: ignore[misc, unused-ignore]
    """Look after every training epoch; log what is seen; stop when the monitor says so.

    Parameters
    ----------
    monitor : Monitor
        Its model is the LightningModule or the network inside it. It gets the optimizer of the
        trainer if it has none.

    Examples
    --------
    ::

        monitor = goldstein.torch.Monitor(net, loss_fn, loader, delta=1e-2)
        Trainer(callbacks=[goldstein.torch.LightningMonitor(monitor)]).fit(module, loader)
    """

    def __init__(self, monitor: Monitor) -> None:
        super().__init__()
        self.monitor = monitor

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Take over the optimizer, and start the clock."""
        if self.monitor.optimizer is None and trainer.optimizers:
            self.monitor.optimizer = trainer.optimizers[0]
        self.monitor.start()

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Look at the model."""
        last = trainer.current_epoch + 1 == trainer.max_epochs
        seen = self.monitor.update(trainer.current_epoch, last=last)
        if seen is not None:
            for logger in trainer.loggers:
                logger.log_metrics(seen.scalars(), step=trainer.global_step)
        if self.monitor.should_stop:
            trainer.should_stop = True
