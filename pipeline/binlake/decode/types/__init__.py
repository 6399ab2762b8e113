"""Types of columns (Connect, MySQL, lake) and conversions from the forms that connectors write."""
