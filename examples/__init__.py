"""Small programs that show binlake at work."""
