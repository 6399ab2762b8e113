"""Dumps of an hour replayed and audited, hour by hour, by Airflow or Dagster."""
