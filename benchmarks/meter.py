"""CPU time of one thread, divided among named steps: what a step calls of another one is not its.

    meter = Meter()
    meter.wrap(PageBuilder, "fill", "links")        # the method of a class, from now on
    ...
    meter.total["links"]                         # nanoseconds; meter.calls["links"]

Functions, generator functions and coroutine functions can be wrapped; of the latter two each step
between two waits is measured. Only the thread that made the meter counts. A call
measured costs some 1.3 us, most of them in asking for the time (``overhead()``); half of that is
in the caller's figure.
"""

from __future__ import annotations

import functools
import inspect
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

StepName = str | Callable[..., str]
"""The step's name, or a function that makes it of the call's arguments."""
_END = object()


async def _next(generator: AsyncIterator[Any]) -> Any:
    return await anext(generator, _END)


class Meter:
    """``total`` are nanoseconds of CPU by step, ``calls`` how often it ran."""

    def __init__(self) -> None:
        self.total: defaultdict[str, int] = defaultdict(int)
        self.calls: defaultdict[str, int] = defaultdict(int)
        self._inner = [0]  # nanoseconds of steps inside those that run now
        self._thread = threading.get_ident()

    def wrap(self, owner: Any, name: str, step: StepName) -> None:
        """Replace a class's or module's function by one that is measured."""
        function = inspect.getattr_static(owner, name)
        assert not isinstance(function, (staticmethod, classmethod, property)), name
        setattr(owner, name, self.measured(function, step))

    def measured(self, function: Callable[..., Any], step: StepName) -> Callable[..., Any]:
        """The same function, measured."""
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generate(*arguments: Any, **named: Any) -> Iterator[Any]:
                name, generator = _name(step, arguments), function(*arguments, **named)
                while (item := self.run(name, next, generator, _END)) is not _END:
                    yield item

            return generate
        if inspect.isasyncgenfunction(function):

            @functools.wraps(function)
            async def stream(*arguments: Any, **named: Any) -> AsyncIterator[Any]:
                name, generator = _name(step, arguments), function(*arguments, **named)
                while (item := await _Task(self, _next(generator), name)) is not _END:
                    yield item

            return stream
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def task(*arguments: Any, **named: Any) -> Any:
                return await _Task(self, function(*arguments, **named), _name(step, arguments))

            return task

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            return self.run(_name(step, arguments), function, *arguments, **named)

        return call

    def run(self, step: str, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call the function; its time is the step's, less that of steps inside it."""
        if threading.get_ident() != self._thread:
            return function(*arguments, **named)
        inner = self._inner
        inner.append(0)
        begin = time.thread_time_ns()
        try:
            return function(*arguments, **named)
        finally:
            took = time.thread_time_ns() - begin
            self.total[step] += took - inner.pop()
            self.calls[step] += 1
            inner[-1] += took

    def overhead(self, calls: int = 20_000) -> float:
        """Nanoseconds that one measured call costs."""
        other = Meter()
        empty = other.measured(lambda: None, "empty")
        begin = time.thread_time_ns()
        for _ in range(calls):
            empty()
        return (time.thread_time_ns() - begin) / calls


def _name(step: StepName, arguments: tuple[Any, ...]) -> str:
    return step if isinstance(step, str) else step(*arguments)


class _Task:
    """A coroutine of which each step is measured."""

    def __init__(self, meter: Meter, coroutine: Any, step: str) -> None:
        self.meter, self.coroutine, self.step = meter, coroutine, step

    def __await__(self) -> Any:
        send, argument = self.coroutine.send, None
        while True:
            try:
                waits_for = self.meter.run(self.step, send, argument)
            except StopIteration as stop:
                return stop.value
            try:
                argument, send = (yield waits_for), self.coroutine.send
            except GeneratorExit:
                self.coroutine.close()
                raise
            except BaseException as error:  # noqa: BLE001 - the coroutine has to hear of it
                argument, send = error, self.coroutine.throw
