"""Base and field types of validated settings: those of the settings file and those of the table format.

It stands alone: the settings of all packages are made from it, and it imports nothing of ours.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    StringConstraints,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError


def mistake(message: str) -> PydanticCustomError:
    """A validation error with our own words. The message must not quote the value, for it may be a secret."""
    return PydanticCustomError("binlake", "{message}", {"message": message})


class Section(BaseModel):
    """Base of all parts of the settings: frozen, and a name it does not know is an error.

    The text below a field describes it in the JSON schema. It is read from the source when a schema is asked for:
    pydantic's ``use_attribute_docstrings`` reads it at every import, a tenth of the time of a short command.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core_schema)
        described = handler.resolve_ref_schema(schema)
        texts = descriptions(cls)
        for name, field in cls.model_fields.items():
            if name in texts:
                described["properties"][field.alias or name].setdefault("description", texts[name])
        return schema


def descriptions(kind: type[BaseModel]) -> Mapping[str, str]:
    """The texts below the fields of a model, by field; those of its bases too."""
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if issubclass(base, BaseModel) and base.__module__.partition(".")[0] != "pydantic":
            texts |= _texts_of(base.__module__).get(base.__qualname__, {})
    return texts


@cache
def _texts_of(module: str) -> Mapping[str, Mapping[str, str]]:
    """By class of a module, the texts that stand right below its fields."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: _texts(node.body) for node in tree.body if isinstance(node, ast.ClassDef)}


def _texts(statements: Sequence[ast.stmt]) -> Mapping[str, str]:
    """The texts that stand right below annotated names."""
    return {
        above.target.id: inspect.cleandoc(text)
        for above, below in pairwise(statements)
        if isinstance(above, ast.AnnAssign) and isinstance(above.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        if isinstance(text := below.value.value, str)
    }


def _no_bool(value: Any) -> Any:  # noqa: ANN401 - whatever YAML held
    if isinstance(value, bool):
        raise mistake("must be a number")
    return value


Count = Annotated[int, Field(ge=1), BeforeValidator(_no_bool)]
Amount = Annotated[int, Field(ge=0), BeforeValidator(_no_bool)]
Fraction = Annotated[float, Field(ge=0, le=1), BeforeValidator(_no_bool)]
Text = Annotated[str, StringConstraints(min_length=1)]


def repeated(names: Iterable[str]) -> list[str]:
    """The names of columns that another one has too but for its case, which MySQL and engines ignore."""
    given = list(names)
    times = Counter(name.lower() for name in given)
    return [name for name in given if times[name.lower()] > 1]


Names = TypeVar("Names", bound=Collection[str])


def _each_once(names: Names) -> Names:
    if doubled := repeated(names):
        raise mistake(f"each column can be named once: {', '.join(doubled)}")
    return names


#: Of a field: its names of columns differ, and not in case alone.
EACH_ONCE = AfterValidator(_each_once)
ColumnNames = Annotated[tuple[Text, ...], EACH_ONCE]
