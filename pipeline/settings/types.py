"""Field types that several sections share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, StringConstraints
from pydantic_core import PydanticCustomError

_SECRET_NAME = re.compile(
    r"pass|secret|token|credential|jaas|private|access_key|account_key|sas|\.key\.pem", re.IGNORECASE
)


def mistake(message: str) -> PydanticCustomError:
    """A validation error with our own words. The message must not quote the value, for it may be a secret."""
    return PydanticCustomError("binlake", "{message}", {"message": message})


class Section(BaseModel):
    """Base of all parts of the settings: frozen, and a name it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, validate_default=True)


def _no_bool(value: Any) -> Any:  # noqa: ANN401 - whatever YAML held
    if isinstance(value, bool):
        raise mistake("must be a number")
    return value


def _texts(value: Any) -> Any:  # noqa: ANN401 - whatever YAML held
    if not isinstance(value, Mapping):
        return value
    return {str(k): _text(v) for k, v in value.items()}


def _text(value: Any) -> Any:  # noqa: ANN401 - whatever YAML held
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def plain(values: Mapping[str, SecretStr]) -> dict[str, str]:
    """Option values in the clear, for handing to a client; never for printing."""
    return {k: v.get_secret_value() for k, v in values.items()}


def looks_secret(name: str) -> bool:
    """Whether an option of that name usually holds a secret (``sasl.password``, ``aws_secret_access_key``...)."""
    return _SECRET_NAME.search(name) is not None


def _regex(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise mistake(f"is not a regular expression: {error.msg}") from error
    return value


Count = Annotated[int, Field(ge=1), BeforeValidator(_no_bool)]
Amount = Annotated[int, Field(ge=0), BeforeValidator(_no_bool)]
Fraction = Annotated[float, Field(ge=0, le=1), BeforeValidator(_no_bool)]
Text = Annotated[str, StringConstraints(min_length=1)]
Regex = Annotated[str, StringConstraints(min_length=1), AfterValidator(_regex)]

#: Free options of somebody else's client. Numbers and booleans are taken as their text; every value is kept secret.
Options = Annotated[Mapping[str, SecretStr], BeforeValidator(_texts)]
