"""Base of the table format's own configurations.

It stands alone: the metadata table and the services both have such policies, and the one may not import the other.
"""

from __future__ import annotations

from typing import Any, Self

from pydantic import ValidationError

from hudilake.errors import ConfigError
from hudilake.validation import Section


class FormatConfig(Section):
    """A policy with what only the table format knows. Raises ConfigError for a value that is not allowed."""

    def __init__(self, **values: Any) -> None:  # noqa: ANN401 - values of any field
        try:
            super().__init__(**values)
        except ValidationError as error:
            mistakes = [": ".join((*map(str, detail["loc"]), detail["msg"])) for detail in error.errors()]
            raise ConfigError(
                f"{type(self).__name__} is not valid: {'; '.join(mistakes)}", do_next="correct the settings"
            ) from error

    @classmethod
    def of(cls, policy: Section, **more: Any) -> Self:  # noqa: ANN401 - values of any field
        """The configuration that a policy asks for; ``more`` gives further fields by name.

        Fields of the policy that the table format does not have are left out. Raises ConfigError.
        """
        return cls(**{name: value for name, value in policy if name in cls.model_fields}, **more)
