"""Rows of base files that need not be read: row groups and pages that certainly hold no row that is wanted."""
