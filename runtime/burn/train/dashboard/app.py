"""The screen of the dashboard, and the main function of its process."""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import sys
import termios
import time
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Footer, Label, ProgressBar, Static, Tab, Tabs
from textual_plotext import PlotextPlot

from burn.train.dashboard.state import RunState, Series, format_seconds, thin_series
from burn.train.dashboard.viewer import print_output

#: Seconds between two drawings of values and messages, and of the plots, which take a
#: tenth of a second of a core.
REFRESH, PLOT_REFRESH = 0.25, 1.0
#: Of more points the mean of neighbors is drawn.
POINTS = 100
TICKS = 6
COLORS = {"train": "cyan", "valid": "orange"}
MESSAGE_LINES = 4


class Connection:
    """Events of the training process and lines that it prints, without waiting."""

    def __init__(self, events: socket.socket, output: int, parent: int) -> None:
        self._events, self._output, self._parent = events, output, parent
        self._events.setblocking(False)
        self._rest, self._position, self._line = b"", 0, b""

    @property
    def is_parent_alive(self) -> bool:
        """Whether training still runs."""
        return os.getppid() == self._parent

    @property
    def has_terminal(self) -> bool:
        """Whether the terminal is open; it may be closed before training ends."""
        try:
            termios.tcgetattr(0)
        except termios.error:
            return False
        return True

    def receive_events(self) -> list[bytes]:
        """Return the events that have come, as lines of JSON."""
        chunks = [self._rest]
        try:
            while data := self._events.recv(1 << 16):
                chunks.append(data)
        except BlockingIOError:
            pass
        *lines, self._rest = b"".join(chunks).split(b"\n")
        return lines

    def read_output(self) -> list[str]:
        """Return the lines that training has printed since the last call."""
        data = os.pread(self._output, 1 << 16, self._position)
        self._position += len(data)
        *lines, self._line = (self._line + data).split(b"\n")
        return [line.decode(errors="replace").rstrip("\r") for line in lines]

    def interrupt(self) -> None:
        """Send the signal of Ctrl-C."""
        if self.is_parent_alive:
            os.kill(self._parent, signal.SIGINT)


class MetricPlot(PlotextPlot):
    """The values of a metric for training and validation, over batches or epochs."""

    def draw(self, title: str, series: Series, axis: str) -> None:
        """Plot the points of each split."""
        self.plt.clear_data()
        last = max((points[-1][0] for points in series.values() if points), default=1)
        self.plt.xticks(list(range(1, last + 1, -(-last // TICKS))))
        self.plt.title(title)
        self.plt.xlabel(axis)
        for split, points in series.items():
            thinned = thin_series(points, POINTS)
            if thinned:
                x, y = ([point[i] for point in thinned] for i in (0, 1))
                color = COLORS.get(split, "green")
                # A line of one point is invisible.
                kind = self.plt.plot if len(thinned) > 1 else self.plt.scatter
                marker = "braille" if len(thinned) > 1 else "dot"
                kind(x, y, label=split, color=color, marker=marker)
        self.refresh()


class DashboardApp(App[None]):
    """Draws a :class:`RunState` twice a second while events come."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    .progress { height: 1; padding: 0 1; }
    .progress ProgressBar { width: 1fr; padding: 0 1; }
    .progress Bar { width: 1fr; }
    .progress Label { width: 28; }
    .progress .left { width: 18; text-align: right; }
    #rates { height: 1; padding: 0 1; color: $text-muted; }
    #plots { height: 1fr; }
    #messages { height: auto; min-height: 1; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "interrupt", "End training", priority=True),
        Binding("ctrl+c", "interrupt", show=False, priority=True),
        Binding("right,tab", "show_next(1)", "Next metric", priority=True),
        Binding("left,shift+tab", "show_next(-1)", "Previous metric", priority=True),
    ]

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self.connection, self.state = connection, RunState()
        self._shown: list[str] = []
        self._has_new_batches, self._drawn_epochs = False, 0
        self._is_interrupted = False

    def compose(self) -> ComposeResult:
        for name in ("epochs", "batches"):
            with Horizontal(classes="progress"):
                yield Label(id=f"{name}-label", markup=False)
                yield ProgressBar(
                    id=f"{name}-bar", show_percentage=False, show_eta=False
                )
                yield Label(id=f"{name}-left", classes="left")
        yield Static(id="rates", markup=False)
        yield Tabs(id="metrics")
        with Horizontal(id="plots"):
            yield MetricPlot(id="batch-plot")
            yield MetricPlot(id="epoch-plot")
        yield Static(id="messages", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        self.set_interval(REFRESH, self.update_screen)
        self.set_interval(PLOT_REFRESH, self.update_plots)
        self.call_after_refresh(self.update_screen)

    async def update_screen(self) -> None:
        """Apply the events that have arrived, and draw the changes."""
        if not self.connection.has_terminal:
            os._exit(0)  # nothing is left to restore
        lines, output = self.connection.receive_events(), self.connection.read_output()
        for line in lines:
            self.state.apply(json.loads(line))
        self._has_new_batches |= bool(lines)
        self.state.messages.extend(output)
        if self.state.is_closed or not self.connection.is_parent_alive:
            self.exit()
            return
        if lines or output:
            await self._add_tabs()
            self._draw_values()

    async def _add_tabs(self) -> None:
        tabs = self.query_one(Tabs)
        for name in self.state.names:
            if name not in self._shown:
                self._shown.append(name)  # the first tab becomes the active one
                label = name.replace("[", "\\[")
                await tabs.add_tab(Tab(label, id=f"metric-{len(self._shown) - 1}"))

    def _draw_values(self) -> None:
        state = self.state
        now = time.monotonic()
        epochs = f"epoch {state.epoch}/{state.epoch_total}"
        left = state.run_seconds_left(now)
        self._draw_bar("epochs", epochs, state.epochs_done, state.epoch_total, left)
        total = state.batch_totals.get(state.split)
        counts = f"{state.number}/{'?' if total is None else total}"
        text = f"{state.split} batch {counts}"
        self._draw_bar("batches", text, state.number, total, state.split_seconds_left)
        speed = state.samples_per_second
        speed_text = "-" if math.isnan(speed) else f"{speed:,.0f}"
        rates = f"learning rate {state.lr:.3g}   samples/second {speed_text}"
        self.query_one("#rates", Static).update(f"{rates}   {state.folder}")
        lines = list(state.messages)[-MESSAGE_LINES:]
        self.query_one("#messages", Static).update("\n".join(lines))

    def _draw_bar(
        self, name: str, text: str, done: int, total: int | None, seconds: float
    ) -> None:
        self.query_one(f"#{name}-label", Label).update(text)
        self.query_one(f"#{name}-bar", ProgressBar).update(total=total, progress=done)
        left = f"{format_seconds(seconds)} left"
        self.query_one(f"#{name}-left", Label).update(left)

    def update_plots(self) -> None:
        """Draw the plots whose values have changed."""
        if self._has_new_batches:
            self._draw_batches()
        if self._drawn_epochs != self.state.epochs_done:
            self._draw_epochs()

    def _draw_batches(self) -> None:
        self._has_new_batches = False
        name, plot = self._active_metric, self.query_one("#batch-plot", MetricPlot)
        if name is not None:
            title = f"{name}, epoch {self.state.epoch}"
            plot.draw(title, self.state.batches.get(name, {}), "batch")

    def _draw_epochs(self) -> None:
        self._drawn_epochs = self.state.epochs_done
        name, plot = self._active_metric, self.query_one("#epoch-plot", MetricPlot)
        if name is not None:
            plot.draw(f"{name}, epochs", self.state.epochs.get(name, {}), "epoch")

    @property
    def _active_metric(self) -> str | None:
        active = self.query_one(Tabs).active
        return self._shown[int(active.removeprefix("metric-"))] if active else None

    def on_tabs_tab_activated(self, event: Tabs.TabActivated) -> None:
        self._draw_batches()
        self._draw_epochs()

    def action_show_next(self, step: int) -> None:
        """Show the metric of another tab."""
        tabs = self.query_one(Tabs)
        if step > 0:
            tabs.action_next_tab()
        else:
            tabs.action_previous_tab()

    def action_interrupt(self) -> None:
        """End training after the batch, the second time at once."""
        self.connection.interrupt()
        if not self._is_interrupted:
            text = "training ends after this batch; press q again to stop at once"
            self.state.messages.append(text)
            self._draw_values()
        self._is_interrupted = True


def main(events: int, output: int, parent: int) -> None:
    """Draw until training ends, the process ``parent``.

    Args:
        events: the descriptor of the socket with events.
        output: the descriptor of the file with the output of training.
        parent: the number of the process.
    """
    os.nice(10)  # on a busy machine the steps come first
    connection = Connection(socket.socket(fileno=events), output, parent)
    app = DashboardApp(connection)
    app.run()
    if not connection.is_parent_alive and not app.state.is_closed:
        print_output(output, sys.stdout.fileno())
        print("the training process ended and left its dashboard", file=sys.stderr)
    sys.exit(app.return_code)
