"""The schema registry that Avro messages need."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator

from hudilake.validation import Section, Text, mistake


class RegistrySettings(Section):
    """A schema registry with Confluent's REST interface."""

    url: Text | None = None
    """``http(s)://host:port``, and a path where it has one; without it, messages in Avro are quarantined."""
    username: Text | None = None
    """The user of HTTP basic authentication."""
    password: SecretStr | None = None
    """The user's password."""
    token: SecretStr | None = None
    """A bearer token, in place of user and password."""
    ca_file: Text | None = None
    """Certificates (PEM) of the authorities to trust for https; null takes the system's."""
    timeout_seconds: float = Field(default=10.0, gt=0)
    """How long one request may take."""
    retry_seconds: float = Field(default=30.0, ge=0)
    """How long a failed request is repeated before the batch fails; the whole batch is then tried again."""

    @field_validator("url")
    @classmethod
    def _plain_url(cls, url: str | None) -> str | None:
        if url is None:
            return None
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise mistake("must be http:// or https://, a host, and perhaps a port and a path")
        if parts.username or parts.password:
            raise mistake("may hold no user: use username and password")
        return url.rstrip("/")

    @field_validator("token")
    @classmethod
    def _one_of_both(cls, token: SecretStr | None, info: object) -> SecretStr | None:
        if token is not None and getattr(info, "data", {}).get("username"):
            raise mistake("give either username and password or a token")
        return token
