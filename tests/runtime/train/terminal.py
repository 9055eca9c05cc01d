"""A program in a terminal of its own, with the screen that a user would see."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from functools import partial
from typing import Any

import pyte

from tests.test_house import ROOT

LINES, COLUMNS = 30, 100
#: The terminal belongs to a shell, as for a user: it stays if the program is killed.
#: The status goes to a pipe, whose descriptor is the first argument.
SHELL = 'pipe=$1; shift; "$@"; echo $? >/dev/fd/$pipe; exec sleep 1000'
#: Seconds until a screen is given up; a loaded machine takes a few.
DEADLINE = 90.0


class Screen(pyte.Screen):
    """A screen that knows the alternate one, which pyte does not."""

    def __init__(self) -> None:
        super().__init__(COLUMNS, LINES)
        self.is_alternate = False
        self._ordinary = deepcopy(self.buffer)

    def set_mode(self, *modes: int, **options: Any) -> None:
        if options.get("private") and 1049 in modes:
            self.is_alternate = True
            self._ordinary = deepcopy(self.buffer)
            self.save_cursor()
            self.erase_in_display(2)
        super().set_mode(*modes, **options)

    def reset_mode(self, *modes: int, **options: Any) -> None:
        if options.get("private") and 1049 in modes:
            self.is_alternate = False
            self.buffer = self._ordinary
            self.restore_cursor()
        super().reset_mode(*modes, **options)


class Terminal:
    """Runs a module in a pseudo-terminal of 30 lines of 100 columns."""

    def __init__(
        self, module: str, *arguments: str, ignores_hangup: bool = False
    ) -> None:
        self.master, self.slave = pty.openpty()
        size = struct.pack("HHHH", LINES, COLUMNS, 0, 0)
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, size)
        self.attributes = termios.tcgetattr(self.slave)
        self.screen = Screen()
        self._stream = pyte.ByteStream(self.screen)
        self._status, pipe = os.pipe()
        self._files = [self.master, self.slave, self._status]
        job = ["-m", module, *arguments]
        paths = [path for path in sys.path if path]
        self.process = subprocess.Popen(
            ["sh", "-c", SHELL, "sh", str(pipe), sys.executable, *job],
            pass_fds=[pipe],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([*paths, str(ROOT)]),
                "TERM": "xterm-256color",
            },
            cwd=ROOT,
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            preexec_fn=partial(_own_terminal, ignores_hangup),
        )
        os.close(pipe)

    @property
    def text(self) -> str:
        """Return the text on the screen."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    def press(self, keys: bytes) -> None:
        """Type keys."""
        os.write(self.master, keys)

    def wait_for(self, text: str) -> None:
        """Wait until the screen shows ``text``.

        Raises:
            AssertionError: it does not within the deadline.
        """
        self.wait_until(lambda: text in self.text, repr(text))

    def wait_until(self, is_done: Callable[[], bool], expected: str) -> None:
        """Read the output until ``is_done``."""
        end = time.monotonic() + DEADLINE
        while not is_done():
            assert time.monotonic() < end, f"expected {expected}, got:\n{self.text}"
            self._read(0.2)

    def wait(self) -> int:
        """Return the exit status of the program, and read what it prints until then."""
        self.wait_until(self._has_status, "the program to end")
        while self._read(0.2):
            pass
        return int(os.read(self._status, 16))

    def is_restored(self) -> bool:
        """Return whether the terminal is in the state from before the program."""
        is_hidden = self.screen.cursor.hidden
        is_same = termios.tcgetattr(self.slave) == self.attributes
        return is_same and not self.screen.is_alternate and not is_hidden

    def hang_up(self) -> None:
        """Close the terminal: its shell ends, and a program that does not ignore it."""
        self.process.kill()
        self.process.wait()
        for _ in range(2):
            os.close(self._files.pop(0))

    def close(self) -> None:
        """Kill the program if it still runs."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        while self._files:
            os.close(self._files.pop())

    def _has_status(self) -> bool:
        return bool(select.select([self._status], [], [], 0)[0])

    def _read(self, seconds: float) -> bool:
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        self._stream.feed(os.read(self.master, 1 << 16))
        return True


def _own_terminal(ignores_hangup: bool) -> None:
    """Make standard input the terminal that keys and signals come from."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN if ignores_hangup else signal.SIG_DFL)
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
