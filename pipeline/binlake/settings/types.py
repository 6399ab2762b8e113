"""Field types of a stream's settings: regular expressions, and detection of secrets by name.

It stands alone: the model, its sections and the fan-out rules all have such fields.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from hudilake.validation import mistake

_SECRET_NAME = re.compile(
    r"pass|secret|token|credential|jaas|private|access_key|account_key|sas|\.key\.pem", re.IGNORECASE
)


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
