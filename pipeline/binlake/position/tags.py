"""Tags: cuts with a name, which are kept until the tag is deleted.

A tag is a savepoint of each table at the tag's cut, and a document in the stream's state that names the commits. The
savepoints come first and go last: a tag that is listed is held. Making or deleting it again after a crash does what is
left.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from binlake.position.cuts import Cut
from binlake.position.state_document import StateDocument
from hudilake.commit.savepoint_record import savepoints
from hudilake.errors import ConfigError, LakeError
from hudilake.services.savepoint import create_savepoint, delete_savepoint
from hudilake.storage import Storage
from hudilake.table.table import HudiTable

_FOLDER: Final = "tags"
#: No tag looks like a time, an instant or a transaction.
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True)
class Tag:
    """A cut that is kept.

    Args:
        name: of the tag.
        completed: when the last of its commits became visible, 17 digits.
        transaction: the newest transaction before it, in the words of the connector; None if no commit ends there.
        commits: URI of a table's root -> the requested time of its newest commit there.
    """

    name: str
    completed: str
    transaction: str | None
    commits: Mapping[str, str]


@dataclass(frozen=True)
class Tags:
    """The tags of a stream.

    Args:
        state: the stream's state directory.
    """

    state: Storage

    def all(self) -> list[Tag]:
        """Every tag, by name. Raises CorruptDataError, StorageError."""
        names = (info.path.rpartition("/")[2].removesuffix(".json") for info in self.state.list(_FOLDER))
        tags = (self.find(name) for name in sorted(names))
        return [tag for tag in tags if tag is not None]

    def find(self, name: str) -> Tag | None:
        """The tag of a name; None if there is none. Errors as ``all``."""
        if not _NAME.fullmatch(name):
            return None
        return _document(name).read(self.state, lambda fields: _tag(name, fields))

    def create(self, name: str, cut: Cut, tables: Mapping[str, HudiTable], user: str) -> Tag:
        """Keep a cut in all of its tables.

        Args:
            name: a letter, then letters, digits, dots, dashes and underscores.
            cut: of the stream.
            tables: by the URI of their roots, opened as writers.
            user: who makes it.

        Raises ConfigError for a name that is taken or cannot be one, and for a cut whose files may have been cleaned;
        LockHeldError, StorageError. After an error no savepoint of it is left, except after a crash.
        """
        if not _NAME.fullmatch(name):
            raise ConfigError(
                "this is no name of a tag",
                do_next="begin with a letter, and take letters, digits, dots, dashes and underscores",
                tag=name,
            )
        if self.find(name) is not None:
            raise ConfigError("there is such a tag already", do_next="delete it, or take another name", tag=name)
        held: list[tuple[HudiTable, str]] = []
        try:
            for uri, instant in cut.commits.items():
                table = tables[uri]
                if instant not in {one.instant for one in savepoints(table.storage, table.timeline)}:
                    create_savepoint(table, instant, user, _comment(name))
                    held.append((table, instant))
        except LakeError:
            for table, instant in held:
                delete_savepoint(table, instant)
            raise
        tag = Tag(name, cut.completed, cut.transaction, dict(cut.commits))
        fields = {"completed": tag.completed, "transaction": tag.transaction, "commits": dict(tag.commits)}
        _document(name).write(self.state, fields)
        return tag

    def delete(self, name: str, tables: Mapping[str, HudiTable]) -> bool:
        """Let a tag go, with the savepoints that tags made and no other tag needs. False if there was none of it.

        Args:
            name: of the tag.
            tables: of the stream, as for ``create``.

        Raises LockHeldError, CorruptDataError, StorageError: then call again.
        """
        tag = self.find(name)
        if tag is not None:
            self.state.delete(_document(name).path)
        needed = {(uri, instant) for other in self.all() for uri, instant in other.commits.items()}
        gone = tag is not None
        for uri, table in tables.items():
            for known in savepoints(table.storage, table.timeline):
                is_ours = known.comment.startswith(_comment("")) and (uri, known.instant) not in needed
                if is_ours and (known.comment == _comment(name) or _is_at(tag, uri, known.instant)):
                    gone = delete_savepoint(table, known.instant) or gone
        return gone


def _comment(name: str) -> str:
    """Of the savepoints that a tag makes."""
    return f"tag {name}"


def _is_at(tag: Tag | None, uri: str, instant: str) -> bool:
    return tag is not None and tag.commits.get(uri) == instant


def _document(name: str) -> StateDocument:
    return StateDocument(
        f"{_FOLDER}/{name}.json", "a tag", "delete it and make the tag again, if its cut is still there"
    )


def _tag(name: str, fields: Mapping[str, Any]) -> Tag:
    return Tag(name, fields["completed"], fields["transaction"], dict(fields["commits"]))
