"""Translates pydantic's validation errors: short messages, with the path in the file, and without values."""

from __future__ import annotations

import difflib
import typing
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from hudilake.errors import ConfigError
from lakemetastore.settings.document import Document, KeyPath, SettingsProblem

M = TypeVar("M", bound=BaseModel)
_WORDS: Mapping[str, str] = {
    "missing": "is required",
    "greater_than_equal": "must be ≥ {ge}",
    "greater_than": "must be > {gt}",
    "less_than_equal": "must be ≤ {le}",
    "less_than": "must be < {lt}",
    "literal_error": "must be one of {expected}",
    "string_pattern_mismatch": "must match {pattern}",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
    "string_type": "must be a text",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "tuple_type": "must be a list",
    "mapping_type": "must be a mapping",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
}


class SettingsError(ConfigError):
    """The settings file has mistakes; ``problems`` has all of them."""

    problems: tuple[SettingsProblem, ...] = ()

    @staticmethod
    def of(origin: str, problems: Iterable[SettingsProblem], schema: str) -> SettingsError:
        """One error for all the mistakes of a file, in the file's order. ``schema``: as for ``validated``."""
        sorted_problems = tuple(sorted(problems, key=lambda p: p.line or 0))
        if len(sorted_problems) == 1:
            what = f"1 mistake in {origin}: {sorted_problems[0]}"
        else:
            what = f"{len(sorted_problems)} mistakes in {origin}:" + "".join(f"\n  {p}" for p in sorted_problems)
        error = SettingsError(
            what,
            do_next=f"correct the settings; `{schema}` prints all names and types",
        )
        error.problems = sorted_problems
        return error


def validated(model: type[M], document: Document, origin: str, schema: str) -> M:
    """The settings that a file gives, by their model. ``origin``: the file's name; ``schema``: the command that prints
    the model's schema. Raises SettingsError."""
    problems = list(document.problems)
    settings: M | None = None
    try:
        settings = model.model_validate(document.values if document.values is not None else {})
    except ValidationError as error:
        problems += translate(error, model, document)
    if problems or settings is None:
        raise SettingsError.of(origin, problems, schema)
    return settings


def translate(error: ValidationError, model: type[BaseModel], document: Document) -> list[SettingsProblem]:
    """The mistakes that pydantic found, with their lines; values with an unresolved reference are left out."""
    broken = {p.path for p in document.problems}
    all_problems = [
        _problem(details, model, document) for details in error.errors(include_url=False, include_input=False)
    ]
    return [p for p in all_problems if p.path not in broken]


def _problem(details: Any, model: type[BaseModel], document: Document) -> SettingsProblem:  # noqa: ANN401 - ErrorDetails
    path: KeyPath = tuple(part for part in details["loc"] if part != "[key]")  # how pydantic marks a wrong name
    return SettingsProblem(path, _message(details, path, model), document.line_of(path))


def _message(details: Any, path: KeyPath, model: type[BaseModel]) -> str:  # noqa: ANN401 - ErrorDetails
    kind, context = details["type"], details.get("ctx", {})
    if kind == "extra_forbidden":
        return "unknown setting" + _suggestion(str(path[-1]), path[:-1], model)
    if kind in _WORDS:
        return _WORDS[kind].format(**context)
    message = str(details["msg"])
    return message[:1].lower() + message[1:]


def _suggestion(name: str, section: KeyPath, model: type[BaseModel]) -> str:
    """A setting of the section that has a like name, else one of a section directly below the file's root."""
    close = difflib.get_close_matches(name, list(_names_at(model, section)), n=1)
    if not close:
        elsewhere = {key: f"{top}.{key}" for top in model.model_fields for key in _names_below(model, top)}
        close = [elsewhere[key] for key in difflib.get_close_matches(name, list(elsewhere), n=1)]
    return f"; did you mean {close[0]}?" if close else ""


def _names_below(model: type[BaseModel], section: str) -> Iterable[str]:
    inner = _model_in(model.model_fields[section].annotation)
    return inner.model_fields if inner is not None else ()


def _names_at(model: type[BaseModel], path: KeyPath) -> Iterable[str]:
    for part in path:
        field = model.model_fields.get(str(part))
        inner = _model_in(field.annotation) if field else None
        if inner is not None:
            model = inner
    return model.model_fields


def _model_in(annotation: Any) -> type[BaseModel] | None:  # noqa: ANN401 - any annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((m for a in typing.get_args(annotation) if (m := _model_in(a))), None)
