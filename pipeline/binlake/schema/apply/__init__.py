"""Carries out DDL on lake tables: judges it per table, backfills rows in one commit, passes it to a batch's tasks."""
