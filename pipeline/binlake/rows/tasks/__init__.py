"""The code that runs in executors: raw records -> parcels -> files, and the values that driver and tasks exchange."""
