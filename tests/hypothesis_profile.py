"""How Hypothesis runs here: no deadlines, for the machines of tests are shared; failures print how to repeat them."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("binlake", deadline=None, print_blob=True)
settings.load_profile("binlake")
