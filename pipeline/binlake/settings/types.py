"""Field types of the settings file: options of other software's clients, and detection of secrets by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, SecretStr, StringConstraints

from hudilake.validation import mistake

_SECRET_NAME = re.compile(
    r"pass|secret|token|credential|jaas|private|access_key|account_key|sas|\.key\.pem", re.IGNORECASE
)


def _texts(value: Any) -> Any:  # noqa: ANN401 - whatever YAML held
    if not isinstance(value, Mapping):
        return value
    return {str(k): _text(v) for k, v in value.items()}


def _text(value: Any) -> Any:  # noqa: ANN401 - whatever YAML held
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def plain(values: Mapping[str, SecretStr]) -> dict[str, str]:
    """Option values in clear text, to be passed to a client; never for printing."""
    return {k: v.get_secret_value() for k, v in values.items()}


def looks_secret(name: str) -> bool:
    """Whether an option with this name usually holds a secret (``sasl.password``, ``aws_secret_access_key``...)."""
    return _SECRET_NAME.search(name) is not None


def _regex(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise mistake(f"is not a regular expression: {error.msg}") from error
    return value


Regex = Annotated[str, StringConstraints(min_length=1), AfterValidator(_regex)]

#: Free options of another software's client. Numbers and booleans become text; every value is treated as secret.
Options = Annotated[Mapping[str, SecretStr], BeforeValidator(_texts)]
