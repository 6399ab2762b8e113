"""Row images of any form as cells: members are found by name, one image after the other."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from binlake.decode.quarantine import Buffer
from binlake.decode.slices import Arrays, Wanted
from binlake.decode.templates.cells import Cells
from binlake.decode.templates.kernel import PLAIN, RAW, VALUE

_I64 = npt.NDArray[np.int64]


def read_images(
    images: Sequence[Buffer], wanted: Sequence[Wanted], documents: Collection[str], passed: Sequence[str]
) -> tuple[_I64, list[Arrays]]:
    """Indices of the images that are valid objects of the wanted columns, and each column of these images.

    ``documents``: columns whose values become text, unchanged byte for byte. ``passed``: members that are skipped
    because they are not columns.
    """
    members = {column.name: RAW if column.name in documents else VALUE for column in wanted}
    ends = np.cumsum(np.fromiter(map(len, images), dtype=np.int64, count=len(images)))
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1]])
    text = np.frombuffer(b"".join(images), dtype=np.uint8)
    matched, cells = Cells.of_objects(text, starts, ends, members | dict.fromkeys(passed, PLAIN))
    at = np.flatnonzero(matched)
    good, columns = cells.read(at, wanted)
    return at[good], columns
