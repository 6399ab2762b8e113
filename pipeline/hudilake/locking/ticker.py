"""Actions at an interval, done by one thread for all tables of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable


class _Round:
    """The thread of one interval. The first action starts it, and it ends one interval after the last action is
    removed, so that consecutive short sections share it."""

    def __init__(self, name: str, interval_s: float) -> None:
        self._name = f"{name} every {interval_s:g} s"
        self._interval_s = interval_s
        self._actions: dict[object, Callable[[], None]] = {}
        self._changed = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, key: object, action: Callable[[], None]) -> None:
        with self._changed:
            self._actions[key] = action
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def remove(self, key: object) -> None:
        with self._changed:
            self._actions.pop(key, None)

    def _run(self) -> None:
        pause = threading.Event()
        while True:
            pause.wait(self._interval_s)
            with self._changed:
                actions = list(self._actions.values())
                if not actions:
                    self._thread = None
                    return
            for action in actions:
                action()


_rounds: dict[tuple[str, float], _Round] = {}
_rounds_lock = threading.Lock()


class Ticker:
    """Actions of one owner.

    Args:
        name: the thread's; owners of one name and interval share it.
        interval_s: from one round to the next. An action is first done within an interval of its being added.
    """

    def __init__(self, name: str, interval_s: float) -> None:
        self._keys: set[object] = set()
        with _rounds_lock:
            self._round = _rounds.setdefault((name, interval_s), _Round(name, interval_s))

    def add(self, key: object, action: Callable[[], None]) -> None:
        """Add an action. It must not raise or take long: other actions wait for it."""
        self._keys.add(key)
        self._round.add((id(self), key), action)

    def remove(self, key: object) -> None:
        """Remove an action; a round that is running may still do it."""
        self._keys.discard(key)
        self._round.remove((id(self), key))

    def close(self) -> None:
        """Remove all actions of this owner."""
        for key in list(self._keys):
            self.remove(key)
