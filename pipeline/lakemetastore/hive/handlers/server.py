"""The server itself: who it is, since when it runs, its settings, who the client says to be."""

from __future__ import annotations

from fb303.ttypes import fb_status

from lakemetastore.errors import ConfigValueError, MetaError
from lakemetastore.hive.context import Context
from lakemetastore.hive.generated import Struct
from lakemetastore.hive.methods import Handler

_DEFAULTS = {
    "hive.exec.default.partition.name": "__HIVE_DEFAULT_PARTITION__",
    "hive.metastore.try.direct.sql": "true",
    "metastore.batch.retrieve.max": "300",
    "metastore.partition.name.whitelist.pattern": "",
    "metastore.try.direct.sql": "true",
}
"""What clients ask HMS 3.1.3 for, and its answers."""
_ASKABLE = ("hive", "hdfs", "mapred", "metastore")


def get_name(context: Context, args: Struct) -> str:
    """What HMSHandler is called when it is started as a process."""
    return "new db based metaserver"


def get_version(context: Context, args: Struct) -> str:
    """The version of the protocol that HMSHandler says."""
    return "3.0"


def get_status(context: Context, args: Struct) -> int:
    """That the server works."""
    alive: int = fb_status.ALIVE
    return alive


def get_status_details(context: Context, args: Struct) -> str:
    """More of the status: nothing."""
    return ""


def alive_since(context: Context, args: Struct) -> int:
    """When the server began, in seconds since the epoch."""
    return context.services.started


def no_counters(context: Context, args: Struct) -> dict[str, int]:
    """fb303's counters: none, for the service has metrics of its own."""
    return {}


def no_counter(context: Context, args: Struct) -> int:
    """One of fb303's counters: 0, as FacebookBase says of one that it does not have."""
    return 0


def no_text(context: Context, args: Struct) -> str:
    """An option of fb303, or a profile: there is none."""
    return ""


def nothing(context: Context, args: Struct) -> None:
    """Clients send it when they leave; the server goes on, as HMSHandler does."""


def set_ugi(context: Context, args: Struct) -> list[str]:
    """The client says who it is. Without Kerberos it is believed."""
    context.session.user = args.user_name
    context.session.groups = args.group_names or []
    return list(context.session.groups)


def get_config_value(context: Context, args: Struct) -> str | None:
    """A setting of the server, or the default that the client gives."""
    if args.name is None:
        return _text(args.defaultValue)
    if not args.name.startswith(_ASKABLE):
        raise ConfigValueError(
            f"For security reasons, the config key {args.name} cannot be accessed",
            do_next=f"ask for a key that begins with one of {', '.join(_ASKABLE)}",
        )
    value = _setting(context, args.name)
    return _text(args.defaultValue) if value is None else value


def get_meta_conf(context: Context, args: Struct) -> str:
    """A setting that clients may change at HMS."""
    value = _setting(context, args.key)
    if value is None:
        raise MetaError(f"Invalid configuration key {args.key}", do_next="ask for a setting of the metastore")
    return value


def set_meta_conf(context: Context, args: Struct) -> None:
    """Settings are the same for all processes and stay."""
    raise MetaError(f"Invalid configuration key {args.key}", do_next="change the settings file of the service")


def _setting(context: Context, name: str) -> str | None:
    return context.services.configuration.get(name, _DEFAULTS.get(name))


def _text(value: Struct) -> str | None:
    return None if value is None else str(value)


CALLS: dict[str, Handler] = {
    "getName": get_name,
    "getVersion": get_version,
    "getStatus": get_status,
    "getStatusDetails": get_status_details,
    "aliveSince": alive_since,
    "getCounters": no_counters,
    "getCounter": no_counter,
    "getOption": no_text,
    "getOptions": no_counters,
    "setOption": nothing,
    "getCpuProfile": no_text,
    "reinitialize": nothing,
    "shutdown": nothing,
    "set_ugi": set_ugi,
    "get_config_value": get_config_value,
    "getMetaConf": get_meta_conf,
    "setMetaConf": set_meta_conf,
}
