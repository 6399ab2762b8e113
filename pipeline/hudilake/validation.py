"""Base and field types of validated settings: those of the settings file and those of the table format.

It stands alone: the settings of all packages are made from it, and it imports nothing of ours.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError


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


Count = Annotated[int, Field(ge=1), BeforeValidator(_no_bool)]
Amount = Annotated[int, Field(ge=0), BeforeValidator(_no_bool)]
Fraction = Annotated[float, Field(ge=0, le=1), BeforeValidator(_no_bool)]
Text = Annotated[str, StringConstraints(min_length=1)]
