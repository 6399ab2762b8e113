"""Values as columns: Connect and MySQL types, and the forms that connectors give them."""
