"""The command, and what becomes of its messages."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

# Time that an interrupted command has to write down the run in progress, and to remove the namespaces of one on real packets.
_GRACE_S = 60.0
# Time after its end until nothing more is expected on its pipes, which a program that it started may hold open.
_REST_S = 5.0
# Lines of standard error that an exception keeps.
_MESSAGE_LINES = 200


class SlicewiseError(Exception):
    """A command that failed.

    ``code``: its exit code. 1: something failed; 2: a mistake in the arguments or the study; 3: a verdict that ``fail_on`` names.
    """

    def __init__(self, message: str, code: int) -> None:
        # Both are arguments, so that it passes between processes.
        super().__init__(message, code)
        self.code = code

    def __str__(self) -> str:
        return self.args[0] or f"slicewise ended with exit code {self.code}"


def find_program() -> Path:
    """Return the path of the command: ``SLICEWISE`` of the environment, that of this package, or the one on the PATH."""
    named = os.environ.get("SLICEWISE")
    if named:
        return Path(named)
    schemes = ["", *(scheme for scheme in sysconfig.get_scheme_names() if scheme.endswith("_user"))]
    for scheme in schemes:
        folder = sysconfig.get_path("scripts", scheme) if scheme else sysconfig.get_path("scripts")
        installed = Path(folder) / "slicewise"
        if installed.is_file():
            return installed
    found = shutil.which("slicewise")
    if found is None:
        raise FileNotFoundError("the command `slicewise` is not installed: install this package anew, or name it in SLICEWISE")
    return Path(found)


def command(*arguments: str | os.PathLike[str], progress: bool | None = None) -> str:
    """Carry out ``slicewise ARGUMENTS`` and return what it prints.

    ``progress``: show its messages while it works; by default on a terminal and in a notebook. ``KeyboardInterrupt`` stops it as Ctrl-C
    does: runs that are finished are kept.

    Raises :class:`SlicewiseError` with its message where it fails.
    """
    if progress is None:
        progress = sys.stderr.isatty() or "ipykernel" in sys.modules
    line = [os.fspath(find_program()), *(os.fspath(argument) for argument in arguments)]
    with subprocess.Popen(
        line,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        # Ctrl-C on a terminal goes to Python alone, which passes it on: a second one would end the command without cleaning up.
        start_new_session=True,
    ) as process:
        printed: list[str] = []
        messages: deque[str] = deque(maxlen=_MESSAGE_LINES)
        readers = [
            threading.Thread(target=_read, args=(process.stdout, printed, None), daemon=True),
            threading.Thread(target=_read, args=(process.stderr, messages, sys.stderr if progress else None), daemon=True),
        ]
        for reader in readers:
            reader.start()
        try:
            code = process.wait()
        except BaseException:
            _stop(process)
            raise
        finally:
            for reader in readers:
                reader.join(_REST_S)
    if code != 0:
        raise SlicewiseError("".join(messages).strip(), code)
    return "".join(printed)


def _read(stream: TextIO, into: list[str] | deque[str], echo: TextIO | None) -> None:
    for line in stream:
        into.append(line)
        try:
            if echo is not None:
                echo.write(line)
                echo.flush()
        except (OSError, ValueError):
            # Nobody reads it; the command still has to be read, or it would wait for ever.
            echo = None


def _stop(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()


def options(**values: object) -> Sequence[str]:
    """Return command-line options: ``repetitions=8`` is ``--repetitions 8``, ``True`` a flag, and a list the option for each of its items.

    ``None``, ``False`` and empty lists are left out.
    """
    line: list[str] = []
    for name, value in values.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            line.append(option)
        elif isinstance(value, (list, tuple)):
            for item in value:
                line += [option, str(item)]
        elif value is not None and value is not False:
            line += [option, str(value)]
    return line
