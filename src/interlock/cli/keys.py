"""`interlock keys`: list, rotate and revoke the keys that sign tokens."""

import click

from interlock.app.context import open_app
from interlock.app.data_home import data_home
from interlock.cli.authority import require_person, require_user
from interlock.cli.terminal import (
    EXIT_REFUSED,
    Stop,
    print_error,
    print_json,
    print_lines,
    print_table,
)


@click.group()
def keys() -> None:
    """Look after the keys that sign tokens"""


@keys.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def list_command(*, as_json: bool) -> None:
    """List the keys; never their secrets"""
    signing_keys = open_app(data_home()).keyring.keys().values()
    if as_json:
        print_json([{"id": key.id, "state": key.state} for key in signing_keys])
    else:
        print_table([(str(key.id), key.state) for key in signing_keys])


@keys.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def rotate(*, as_json: bool) -> None:
    """Sign with a new key from now on; tokens of the old one keep working"""
    require_user("Changing keys")
    new_key = open_app(data_home()).keyring.rotate()
    if as_json:
        print_json({"current": new_key.id})
    else:
        print_lines(
            f"Key {new_key.id} signs from now on. `interlock keys revoke ID` ends an old one."
        )


@keys.command()
@click.argument("key_id", type=int)
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def revoke(key_id: int, *, as_json: bool) -> None:
    """Refuse the tokens of a retired key from now on"""
    require_person("Revoking a key")
    if not open_app(data_home()).keyring.revoke(key_id):
        print_error(
            f"No retired key `{key_id}`",
            "`interlock keys list` shows them; the current one must be rotated first.",
        )
        raise Stop(EXIT_REFUSED)
    if as_json:
        print_json({"revoked": key_id})
    else:
        print_lines(f"Tokens of key {key_id} are refused from now on.")
