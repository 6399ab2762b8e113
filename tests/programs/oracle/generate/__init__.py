"""The generator: draws a seed's script statement by statement, and asks the server what tables there are."""
