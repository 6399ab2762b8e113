"""Requests to the API by their bare parts, for what a client of ours would never send."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import urllib3


def get(address: str, path: str, **fields: str) -> tuple[int, dict[str, Any]]:
    """Status and body of a GET."""
    answer = urllib3.request("GET", address + path, fields=fields, retries=False)
    return answer.status, json.loads(answer.data)


def post(
    address: str, path: str, body: Mapping[str, Any] | bytes, fields: Mapping[str, str] | None = None
) -> tuple[int, dict[str, Any]]:
    """Status and body of a POST. ``body``: JSON, or bytes as they are."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    query = "?" + urlencode(fields) if fields else ""
    headers = {"Content-Type": "application/json"}
    answer = urllib3.request("POST", address + path + query, body=data, headers=headers, retries=False)
    return answer.status, json.loads(answer.data)
