"""A file that grows at its end and never claims to hold what could not be written.

Python's buffered files forget: when the disk is full, close() throws away what was buffered, and
the file then looks whole. Here a failure is kept, so that no later flush() names a position and no
checkpoint commits one.
"""

from __future__ import annotations

import os
import threading
from contextlib import nullcontext
from pathlib import Path

BUFFER_BYTES = 256 * 1024


class AppendFile:
    """``end`` is the length in bytes with all that was written, on disk or still buffered."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("ab", buffering=BUFFER_BYTES)
        self.end = self._file.tell()
        self._failure: tuple[int, str, str] | None = None
        self._closing = threading.Lock()  # the file stays open while another thread syncs it
        self._let_go = False

    def write(self, data: bytes) -> None:
        """Raises OSError, from the first failure on each time."""
        self._raise_failure()
        try:
            self._file.write(data)
        except OSError as error:
            raise self._failed(error) from None
        self.end += len(data)

    def flush(self) -> int:
        """Hand what is buffered to the operating system; the length. Also after close()."""
        self._raise_failure()
        if not self._file.closed:
            try:
                self._file.flush()
            except OSError as error:
                raise self._failed(error) from None
        return self.end

    def sync(self) -> None:
        """Wait until what was flushed is on disk; from any thread, nothing once it is closed."""
        with self._closing:
            if self._file.closed and not self._let_go:
                return
            try:
                with self.path.open("rb") if self._let_go else nullcontext(self._file) as file:
                    os.fsync(file.fileno())
            except OSError as error:
                raise self._failed(error) from None
            self._let_go = False

    def let_go(self) -> None:
        """Write out and close, but leave the wait for the disk to sync() or close(). Raises
        OSError."""
        self.flush()
        with self._closing:
            try:
                self._file.close()
            except OSError as error:
                raise self._failed(error) from None
            self._let_go = True

    def close(self) -> None:
        """Write out, sync and close; may be called twice. A failure is kept: flush() raises it."""
        try:
            self.flush()
            self.sync()
        except OSError:
            pass
        with self._closing:
            try:
                self._file.close()
            except OSError as error:
                self._failed(error)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise OSError(*self._failure)

    def _failed(self, error: OSError) -> OSError:
        if self._failure is None:
            self._failure = error.errno or 0, error.strerror or str(error), str(self.path)
        return OSError(*self._failure)
