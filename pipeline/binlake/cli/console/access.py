"""Who may act: a token, a session for a browser that has given it, and a key that every form must carry.

Without a token nobody may, and the pages are for reading. The token is compared in constant time and never shown. A
session lives in memory, so it ends with the console. Its cookie goes to no other site and is read by no script, and a
form that lacks the session's key, which another site cannot know, does nothing. Each key is taken once.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from hudilake.clock import monotonic_s
from hudilake.errors import ConfigError

COOKIE = "binlake_console"
ENVIRONMENT = "BINLAKE_CONSOLE_TOKEN"
_MIN_CHARACTERS = 16
_LIVES_S = 8 * 3600.0


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """A browser that gave the token. ``form_key``: what its forms carry; ``until_s``: on the monotonic clock."""

    form_key: str
    until_s: float


@dataclass
class Access:
    """The right to act. ``token``: None lets nobody act."""

    token: str | None = None
    _sessions: dict[str, BrowserSession] = field(default_factory=dict)

    @staticmethod
    def of(file: Path | None) -> Access:
        """The token of a file, or of the environment without one. Raises ConfigError for a short one."""
        try:
            text = file.read_text() if file is not None else os.environ.get(ENVIRONMENT, "")
        except (OSError, ValueError) as error:
            raise ConfigError(f"the token cannot be read: {error}", do_next="name a readable file") from error
        token = text.strip()
        if (token or file is not None) and len(token) < _MIN_CHARACTERS:
            raise ConfigError(
                f"the token has fewer than {_MIN_CHARACTERS} characters",
                do_next="make one by: openssl rand -hex 32",
            )
        return Access(token or None)

    @property
    def possible(self) -> bool:
        """Whether anybody may act."""
        return self.token is not None

    def sign_in(self, given: str) -> str | None:
        """The name of a new session for the right token; None for another one."""
        if self.token is None or not hmac.compare_digest(given.encode(), self.token.encode()):
            return None
        now_s = monotonic_s()
        self._sessions = {name: one for name, one in self._sessions.items() if one.until_s > now_s}
        name = secrets.token_urlsafe(32)
        self._sessions[name] = BrowserSession(secrets.token_urlsafe(32), now_s + _LIVES_S)
        return name

    def sign_out(self, cookies: Mapping[str, str]) -> None:
        """End a session."""
        self._sessions.pop(cookies.get(COOKIE, ""), None)

    def session(self, cookies: Mapping[str, str]) -> BrowserSession | None:
        """The session of a request; None if it has none that lives."""
        known = self._sessions.get(cookies.get(COOKIE, ""))
        return known if known is not None and known.until_s > monotonic_s() else None

    def permits(self, cookies: Mapping[str, str], form: Mapping[str, str]) -> bool:
        """Whether a form comes from a page of a session and was not sent before: each sending changes the key."""
        session = self.session(cookies)
        if session is None or not hmac.compare_digest(form.get("key", "").encode(), session.form_key.encode()):
            return False
        self._sessions[cookies[COOKIE]] = replace(session, form_key=secrets.token_urlsafe(32))
        return True
