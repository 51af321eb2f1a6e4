"""A callback of Hugging Face's Trainer that watches a run with a `Monitor`."""

from typing import Any

from goldstein.extras import from_extra

with from_extra("TrainerMonitor", "transformers", "watch"):
    from transformers import TrainerCallback

from goldstein.torch.watching.monitor import Monitor


class TrainerMonitor(TrainerCallback):  # type: ignore[misc, unused-ignore]
    """Look after every epoch; add what is seen to `log_history`; stop when the monitor says so.

    Parameters
    ----------
    monitor : Monitor
        Its model is the one that the Trainer trains; batches that are dicts are passed by name, and
        `loss_fn = lambda output, batch: output.loss` takes the model's own loss. It gets the
        optimizer of the Trainer if it has none.

    Examples
    --------
    ::

        monitor = goldstein.torch.Monitor(model, lambda out, batch: out.loss, loader, delta=1e-2)
        Trainer(model, args, callbacks=[goldstein.torch.TrainerMonitor(monitor)], ...).train()
    """

    def __init__(self, monitor: Monitor) -> None:
        self.monitor = monitor

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Take over the optimizer, and start the clock."""
        if self.monitor.optimizer is None:
            wrapped = given.get("optimizer")
            # Accelerate wraps the optimizer of the user.
            self.monitor.optimizer = getattr(wrapped, "optimizer", wrapped)
        self.monitor.start()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Look at the model."""
        seen = self.monitor.update(round(state.epoch), last=state.epoch >= args.num_train_epochs)
        if seen is not None:
            state.log_history.append(
                {**seen.scalars(), "epoch": state.epoch, "step": state.global_step}
            )
        if self.monitor.should_stop:
            control.should_training_stop = True
