"""The process that draws the dashboard, from the side of training.

Textual needs the main thread for its signals, and so does training; drawing would also
take the interpreter's lock from the steps. The process owns the terminal until it ends,
so that it can restore it even if training is killed.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

#: Seconds to wait for the process to restore the terminal.
CLOSE = 10.0
#: Leaves the alternate screen, shows the cursor, and ends reports of the mouse, of
#: focus and of pasted text.
RESTORE = b"\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l"
START = (
    "import json, sys\n"
    "sys.path[:] = json.loads(sys.argv[1])\n"
    "from burn.train.dashboard.app import main\n"
    "main(*map(int, sys.argv[2:]))\n"
)


class Viewer:
    """Starts the process; :meth:`close` restores the terminal and prints the output.

    Standard output and error, where they are the terminal, go to a file meanwhile, also
    the output of libraries.
    """

    def __init__(self) -> None:
        self._attributes = termios.tcgetattr(0)
        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)
        # A file, not a pipe: writing to it never waits for the process.
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._terminal = os.dup(1)
        self._process = self._start(theirs.fileno())
        theirs.close()
        self._redirected: dict[int, int] = {}
        self._redirect()
        self._pending = bytearray()
        self.is_gone = False

    @property
    def status(self) -> int | None:
        """The exit status of the process, None while it runs."""
        return self._process.poll()

    def _start(self, theirs: int) -> subprocess.Popen[bytes]:
        numbers = (theirs, self._output.fileno(), os.getpid())
        arguments = [json.dumps(sys.path), *map(str, numbers)]
        # A Ctrl-C before the terminal is in raw mode is for training alone.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return subprocess.Popen(
                [sys.executable, "-c", START, *arguments],
                stdin=0,
                stdout=self._terminal,
                stderr=self._terminal,
                pass_fds=numbers[:2],
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def send(self, event: object) -> None:
        """Send an event, which JSON can represent; the process may get it later."""
        self._pending += json.dumps(event).encode() + b"\n"
        try:
            while self._pending:
                sent = self._socket.send(self._pending)
                del self._pending[:sent]
        except (BlockingIOError, TimeoutError):
            return  # the rest follows with the next event
        except OSError:
            self.is_gone = True

    def close(self) -> None:
        """End the process, restore the terminal and print the output of the meantime.

        A process that does not end is killed.
        """
        with _ignoring_interrupts():
            self._end()

    def _end(self) -> None:
        self._socket.settimeout(CLOSE)
        self.send(("close",))
        self._socket.close()
        try:
            status = self._process.wait(CLOSE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        self._restore(is_screen_left=status == 0)

    def _redirect(self) -> None:
        _flush_streams()
        for number in (1, 2):
            if os.isatty(number):
                self._redirected[number] = os.dup(number)
                os.dup2(self._output.fileno(), number)

    def _restore(self, is_screen_left: bool) -> None:
        _flush_streams()
        for number, saved in self._redirected.items():
            os.dup2(saved, number)
            os.close(saved)
        with suppress(OSError, termios.error):  # the terminal was closed
            if not is_screen_left:
                os.write(self._terminal, RESTORE)
            termios.tcsetattr(0, termios.TCSADRAIN, self._attributes)
        print_output(self._output.fileno(), self._terminal)
        self._output.close()
        os.close(self._terminal)


def print_output(file: int, terminal: int) -> None:
    """Write all of the file to the terminal."""
    position = 0
    with suppress(OSError):  # the terminal was closed
        while data := os.pread(file, 1 << 16, position):
            position += os.write(terminal, data)


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C, so that no terminal stays half restored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
