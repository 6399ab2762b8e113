"""Calls about what the catalog does not keep: roles, privileges, constraints, events.

Reads get the answer that HMS 3.1.3 gives where nothing was ever put; changes are not served.
"""

from __future__ import annotations

from hive_metastore import ttypes

from lakemetastore.hive.context import Context
from lakemetastore.hive.generated import Struct
from lakemetastore.hive.methods import Handler

_PUBLIC = "public"


def get_role_names(context: Context, args: Struct) -> list[str]:
    """The roles that HMS always has."""
    return ["admin", _PUBLIC]


def list_roles(context: Context, args: Struct) -> list[Struct]:
    """The roles of a user: the one that all have."""
    if args.principal_type != ttypes.PrincipalType.USER:
        return []
    return [ttypes.Role(roleName=_PUBLIC, createTime=0, ownerName=_PUBLIC)]


def get_role_grants_for_principal(context: Context, args: Struct) -> Struct:
    """The roles of a user: the one that all have."""
    name, kind = args.request.principal_name, args.request.principal_type
    if kind != ttypes.PrincipalType.USER:
        return ttypes.GetRoleGrantsForPrincipalResponse(principalGrants=[])
    grant = ttypes.RolePrincipalGrant(
        roleName=_PUBLIC, principalName=name, principalType=kind, grantOption=False, grantTime=0
    )
    return ttypes.GetRoleGrantsForPrincipalResponse(principalGrants=[grant])


def get_principals_in_role(context: Context, args: Struct) -> Struct:
    """Who has a role."""
    return ttypes.GetPrincipalsInRoleResponse(principalGrants=[])


def get_privilege_set(context: Context, args: Struct) -> Struct:
    """What a user may do with an object: nothing is granted, and nothing is checked."""
    return ttypes.PrincipalPrivilegeSet(
        userPrivileges={args.user_name: []} if args.user_name else {},
        groupPrivileges={group: [] for group in args.group_names or ()},
        rolePrivileges={_PUBLIC: []},
    )


def list_privileges(context: Context, args: Struct) -> list[Struct]:
    """What is granted to a user."""
    return []


def get_primary_keys(context: Context, args: Struct) -> Struct:
    """Constraints."""
    return ttypes.PrimaryKeysResponse(primaryKeys=[])


def get_foreign_keys(context: Context, args: Struct) -> Struct:
    """Constraints."""
    return ttypes.ForeignKeysResponse(foreignKeys=[])


def get_unique_constraints(context: Context, args: Struct) -> Struct:
    """Constraints."""
    return ttypes.UniqueConstraintsResponse(uniqueConstraints=[])


def get_not_null_constraints(context: Context, args: Struct) -> Struct:
    """Constraints."""
    return ttypes.NotNullConstraintsResponse(notNullConstraints=[])


def get_default_constraints(context: Context, args: Struct) -> Struct:
    """Constraints."""
    return ttypes.DefaultConstraintsResponse(defaultConstraints=[])


def get_check_constraints(context: Context, args: Struct) -> Struct:
    """Constraints."""
    return ttypes.CheckConstraintsResponse(checkConstraints=[])


def get_all_table_constraints(context: Context, args: Struct) -> Struct:
    """Constraints."""
    none = ttypes.SQLAllTableConstraints(
        primaryKeys=[],
        foreignKeys=[],
        uniqueConstraints=[],
        notNullConstraints=[],
        defaultConstraints=[],
        checkConstraints=[],
    )
    return ttypes.AllTableConstraintsResponse(allTableConstraints=none)


def get_current_notification_event_id(context: Context, args: Struct) -> Struct:
    """The number of the last event: none was ever written."""
    return ttypes.CurrentNotificationEventId(eventId=0)


def get_next_notification(context: Context, args: Struct) -> Struct:
    """Events after a number."""
    return ttypes.NotificationEventResponse(events=[])


def get_notification_events_count(context: Context, args: Struct) -> Struct:
    """How many events there are after a number."""
    return ttypes.NotificationEventsCountResponse(eventsCount=0)


def fire_listener_event(context: Context, args: Struct) -> Struct:
    """A client tells of rows that it inserted; nobody listens."""
    return ttypes.FireEventResponse(eventIds=[])


CALLS: dict[str, Handler] = {
    "get_role_names": get_role_names,
    "list_roles": list_roles,
    "get_role_grants_for_principal": get_role_grants_for_principal,
    "get_principals_in_role": get_principals_in_role,
    "get_privilege_set": get_privilege_set,
    "list_privileges": list_privileges,
    "get_primary_keys": get_primary_keys,
    "get_foreign_keys": get_foreign_keys,
    "get_unique_constraints": get_unique_constraints,
    "get_not_null_constraints": get_not_null_constraints,
    "get_default_constraints": get_default_constraints,
    "get_check_constraints": get_check_constraints,
    "get_all_table_constraints": get_all_table_constraints,
    "get_current_notificationEventId": get_current_notification_event_id,
    "get_next_notification": get_next_notification,
    "get_notification_events_count": get_notification_events_count,
    "fire_listener_event": fire_listener_event,
}
