"""Mutants of the compiled loops that read Avro records and WAL entries, and of what decides which they read."""

from __future__ import annotations

from tests.programs.mutants.mutant import Mutant

_AVRO = "tests/binlake/decode/templates/test_avro_templates.py"
_WAL = "tests/binlake/hbase/formats/test_wal_templates.py"
_KERNEL = "pipeline/binlake/decode/templates/avro_kernel.py"
_PROGRAM = "pipeline/binlake/decode/templates/avro_program.py"
_CELLS = "pipeline/binlake/decode/templates/avro_cells.py"
_SCAN = "pipeline/binlake/decode/templates/avro_scan.py"
_WAL_KERNEL = "pipeline/binlake/hbase/formats/wal_kernel.py"
_WAL_SCAN = "pipeline/binlake/hbase/formats/wal_scan.py"
_BAD_VALUES = (f"{_AVRO}::test_bytes_that_are_no_value",)
_LEFT = (f"{_WAL}::test_entries_that_are_left",)
_BASE64 = (f"{_WAL}::test_text_that_is_and_is_no_base64",)

COMPILED = (
    Mutant(
        "avro-varint", "a number of more than 64 bits is left to the general decoder", "its upper bits are lost",
        _KERNEL,
        "        if shift == _LAST_SHIFT and byte > _LAST_BYTE:\n            break\n",
        "",
        _BAD_VALUES,
    ),
    Mutant(
        "avro-length", "a text or bytes of a negative length is left", "the walk goes back",
        _KERNEL,
        "if number < 0 or number > end - cursor:",
        "if number > end - cursor:",
        (f"{_AVRO}::test_a_length_that_leads_back",),
    ),
    Mutant(
        "avro-utf8", "a text that is not UTF-8 is left", "its bytes are taken",
        _KERNEL,
        "if step == READ_TEXT and not _is_utf8(text, words, cursor, cursor + number):",
        "if step == READ_TEXT and number < 0:",
        _BAD_VALUES,
    ),
    Mutant(
        "avro-utf8-three", "overlong texts and surrogates are no UTF-8", "they are taken",
        _KERNEL,
        "if (byte == 0xE0 and second < 0xA0) or (byte == 0xED and second >= 0xA0):",
        "if second < 0x80:",
        _BAD_VALUES,
    ),
    Mutant(
        "avro-utf8-four", "overlong texts and code points beyond Unicode's are no UTF-8", "they are taken",
        _KERNEL,
        "if (byte == 0xF0 and second < 0x90) or (byte == 0xF4 and second >= 0x90):",
        "if second < 0x80:",
        _BAD_VALUES,
    ),
    Mutant(
        "avro-utf8-words", "eight bytes at once are ASCII only if each is", "the highest one is not looked at",
        _KERNEL,
        "_HIGH_BITS = 0x8080808080808080\n",
        "_HIGH_BITS = 0x0080808080808080\n",
        _BAD_VALUES,
    ),
    Mutant(
        "avro-boolean", "a boolean is 0 or 1", "any byte is one",
        _KERNEL,
        "if cursor >= end or text[cursor] > 1:",
        "if cursor >= end:",
        _BAD_VALUES,
    ),
    Mutant(
        "avro-finite", "a float that is no number is left, as JSON has none", "it is taken",
        _KERNEL,
        "if bits & special == special:",
        "if bits & special > special:",
        _BAD_VALUES,
    ),
    Mutant(
        "avro-branch", "a union has two branches", "a third one is the value",
        _KERNEL,
        "if branch > 1 or (step == ONLY and branch != 0):",
        "if step == ONLY and branch != 0:",
        _BAD_VALUES,
    ),
    Mutant(
        "avro-only-branch", "a union of one type has one branch", "a second one is the value",
        _KERNEL,
        "if branch > 1 or (step == ONLY and branch != 0):",
        "if branch > 1:",
        _BAD_VALUES,
    ),
    Mutant(
        "avro-null-branch", "the schema says which branch of a union is null", "the first one is",
        _KERNEL,
        "if step == UNION and branch == arg:",
        "if step == UNION and branch == 0:",
        (f"{_AVRO}::test_null_may_be_either_branch",),
    ),
    Mutant(
        "avro-symbol", "an enum has a symbol of its own", "it has one of the next enum",
        _KERNEL,
        "if cursor == _BAD or number < 0 or number >= steps[n - 1, 3]:",
        "if cursor == _BAD or number < 0:",
        _BAD_VALUES,
    ),
    Mutant(
        "avro-symbol-negative", "the number of a symbol is not negative", "it may be",
        _KERNEL,
        "if cursor == _BAD or number < 0 or number >= steps[n - 1, 3]:",
        "if cursor == _BAD or number >= steps[n - 1, 3]:",
        _BAD_VALUES,
    ),
    Mutant(
        "avro-whole", "a record ends where its message ends", "bytes behind it are passed over",
        _KERNEL,
        "        good = good and cursor == end\n",
        "        good = good and cursor <= end\n",
        (f"{_AVRO}::test_damaged_and_cut_messages_are_told_alike",),
    ),
    Mutant(
        "avro-images", "an envelope has two images of the same columns", "they may differ",
        _PROGRAM,
        "return compiler.program() if images[0] == images[1] else None",
        "return compiler.program() if images else None",
        (f"{_AVRO}::test_schemas_that_are_left",),
    ),
    Mutant(
        "avro-kinds", "a column has one type in both images", "it has that of the first",
        _PROGRAM,
        "        elif column.kind != self._kind(node):\n            raise _UnreadableError\n",
        "",
        (f"{_AVRO}::test_schemas_that_are_left",),
    ),
    Mutant(
        "avro-sure-float", "a double becomes a float only where both ways round alike", "it is rounded",
        _CELLS,
        "good &= self._is_sure_float(rows, column)",
        "good &= rows >= 0",
        (f"{_AVRO}::test_doubles_that_round_to_another_float",),
    ),
    Mutant(
        "avro-float-limit", "a double whose decimal rounds to another float is left", "it is rounded as it is",
        _CELLS,
        "return np.asarray((near[0] == near[1]) | (numbers == numbers.astype(np.float32)))",
        "return np.asarray((near[0] <= near[1]) | (numbers == numbers.astype(np.float32)))",
        (f"{_AVRO}::test_doubles_that_round_to_another_float",),
    ),
    Mutant(
        "avro-binary", "bytes come as they are only where a column takes them so", "they come so to all",
        _CELLS,
        "        return binary and bool(pa.types.is_string(kind))\n",
        "        return bool(pa.types.is_string(kind))\n",
        (f"{_AVRO}::test_bytes_where_text_is_declared",),
    ),
    Mutant(
        "avro-no-row", "an event has the row that its operation needs", "a delete without one is read",
        _SCAN,
        " & (_there(reading, BEFORE) | ~of_before)",
        "",
        (f"{_AVRO}::test_other_messages_among_envelopes",),
    ),
    Mutant(
        "avro-table", "an event names its database and table", "it may have null there",
        _SCAN,
        "        good &= reading.what[slot] == TEXT\n",
        "        good &= reading.what[slot] >= 0\n",
        (f"{_AVRO}::test_an_event_without_a_table",),
    ),
    Mutant(
        "wal-base64", "a character of base64 has six bits", "any has",
        _WAL_KERNEL,
        "        if (a | b | c | d) & _NO_BITS == 0:\n",
        "        if (a | b | c) & _NO_BITS == 0 and text[cursor + 3] != _PAD:\n",
        _BASE64,
    ),
    Mutant(
        "wal-third", "the third character before padding has bits", "any has",
        _WAL_KERNEL,
        "        if c & _NO_BITS:\n            break\n",
        "",
        _BASE64,
    ),
    Mutant(
        "wal-member-once", "a cell has each member once", "the last one counts",
        _WAL_KERNEL,
        "good = member != _BAD and seen & 1 << member == 0",
        "good = member != _BAD",
        _LEFT,
    ),
    Mutant(
        "wal-members", "a cell has all members", "those of the cell before stand for them",
        _WAL_KERNEL,
        "good = good and seen & needed == needed and (filled[cell] or kind[cell] != 0)",
        "good = good and (filled[cell] or kind[cell] != 0)",
        _LEFT,
    ),
    Mutant(
        "wal-put-value", "a put has a value", "it may have none",
        _WAL_KERNEL,
        "good = good and seen & needed == needed and (filled[cell] or kind[cell] != 0)",
        "good = good and seen & needed == needed",
        _LEFT,
    ),
    Mutant(
        "wal-notes", "HBase's notes are no cells", "they are",
        _WAL_KERNEL,
        "good = not _is_at(data[FAMILY], places[FAMILY, cell], places[FAMILY, cell + 1], _NOTES, 0, size)",
        "good = True",
        _LEFT,
    ),
    Mutant(
        "wal-timestamp", "a cell's time is one that HBase stores", "it may be negative, or the mark for now",
        _WAL_KERNEL,
        "good = what == INT and 0 <= number < _NO_TIMESTAMP",
        "good = what == INT",
        _LEFT,
    ),
    Mutant(
        "wal-time-kind", "a cell's time is an integer", "the digits before a point are one",
        _WAL_KERNEL,
        "good = what == INT and 0 <= number < _NO_TIMESTAMP",
        "good = 0 <= number < _NO_TIMESTAMP",
        _LEFT,
    ),
    Mutant(
        "wal-null", "a value is text or null", "any word that begins with an n is null",
        _WAL_KERNEL,
        "good = _is_at(text, cursor, end, _NULL, 0, 4)",
        "good = cursor + 4 < end",
        _LEFT,
    ),
    Mutant(
        "wal-no-value", "a cell without a value has null", "it has none of its bytes, and is not null",
        _WAL_KERNEL,
        "            filled[cell] = False\n",
        "            filled[cell] = True\n",
        (f"{_WAL}::test_entries_in_the_usual_form_are_read", *_LEFT),
    ),
    Mutant(
        "wal-head", "the head of an entry has two numbers", "other values stand for the sequence",
        _WAL_SCAN,
        "(what[_WRITE_TIME] == INT) & (what[_SEQUENCE] == INT) & (what[_CELLS] == NESTED)",
        "(what[_WRITE_TIME] == INT) & (what[_CELLS] == NESTED)",
        (f"{_WAL}::test_heads_that_are_no_numbers",),
    ),
    Mutant(
        "wal-members-once", "an entry has its members once, at any level", "one in another place is passed over",
        _WAL_SCAN,
        "and all(names.count(member) == 1 for member in MEMBERS)",
        "and all(member in names for member in MEMBERS)",
        _LEFT,
    ),
    Mutant(
        "wal-other-members", "an entry has a key and an edit", "it may have more",
        _WAL_SCAN,
        '    if not isinstance(document, dict) or document.keys() != {"key", "edit"}:\n',
        '    if not isinstance(document, dict) or not {"key", "edit"} <= document.keys():\n',
        _LEFT,
    ),
    Mutant(
        "wal-nesting", "an entry of JSON that is refused teaches no template", "it does",
        _WAL_SCAN,
        "if not _is_entry(document) or json_fault(text, max_nesting) is not None:",
        "if not _is_entry(document):",
        (f"{_WAL}::test_entries_that_are_nested_too_deeply",),
    ),
)  # fmt: skip
