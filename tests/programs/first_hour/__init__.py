"""The README's quick start and the pages of the first hour, followed word by word in a clean environment."""
