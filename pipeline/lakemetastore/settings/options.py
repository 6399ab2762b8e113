"""Free options of another software's client in a file of settings. They are taken as text, and each one as a secret.

It stands alone: the settings of streams and of services both have such options.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, SecretStr


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


#: Numbers and booleans become text; every value is treated as secret.
Options = Annotated[Mapping[str, SecretStr], BeforeValidator(_texts)]
