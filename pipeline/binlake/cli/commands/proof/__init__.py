"""Commands that prove tables: against themselves, against the records that were read, against the live source."""
