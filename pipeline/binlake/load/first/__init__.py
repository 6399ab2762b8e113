"""The first load: tables read from the source's server itself, without a connector's snapshot."""
