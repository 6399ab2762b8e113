"""Each refusal has a rule, and each rule stands in the documentation."""

from __future__ import annotations

import re

from tests.paths import ROOT
from tests.programs.proofs.page import PAGE
from tests.programs.proofs.rules import RULES, rule_of


def test_the_words_of_each_rule_stand_on_its_page() -> None:
    pages = {rule.page: " ".join((ROOT / "docs" / rule.page).read_text().split()) for rule in RULES}
    assert [rule for rule in RULES if rule.words not in pages[rule.page]] == []


def test_each_refusal_on_the_page_has_a_rule() -> None:
    reasons = re.findall(r"^\| refused \| (.*?) \|", PAGE.read_text(), re.MULTILINE)
    assert reasons
    assert [reason for reason in reasons if rule_of(reason) is None] == []


def test_another_refusal_has_none() -> None:
    assert rule_of("broke: KeyError in upsert.py:run") is None
