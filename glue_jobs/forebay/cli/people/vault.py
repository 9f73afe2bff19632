"""`forebay privacy show` and `rotate`: the values that the vault holds for a person, and re-encryption of its keys."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer

from forebay.cli.answer import answers, tell
from forebay.cli.options import AsJson, Lake, Service
from forebay.cli.show import columns, console, print_json
from forebay.cli.usage import must_be_given
from forebay.counted import counted


def show(
    lake: Lake,
    subject: Annotated[str, typer.Argument(help="The person: the subject as in the records, or its token.")],
    service: Service = "",
    as_json: AsJson = False,
) -> None:
    """Show what the vault holds about a person, decrypted, and from which files it came.

    Only the role of the vault's users may do that. `forebay privacy erase --dry-run` says which tables have rows of the person.
    """
    from forebay.declaration.kept.in_force import service_for
    from forebay.operate.named_lake import view_of
    from forebay.operate.people.person import vault_values

    found = vault_values(view_of(lake), service_for(service, lake), subject)
    if as_json:
        print_json({**asdict(one), "at": one.at.isoformat()} for one in found)
        return
    if not found:
        console.print("the vault holds nothing of this subject")
        return
    shown = columns("field", "value", "file", ">byte", "read at")
    for one in found:
        shown.add_row(one.path, str(one.value), one.file, str(one.byte_offset), f"{one.at:%Y-%m-%d %H:%M}")
    console.print(shown)


@answers
def rotate(service: Service = "") -> None:
    """Re-encrypt the keys of the vault with its current KMS key; no value is read.

    Run it after the KMS key was rotated, or when vault_key names another one: both keys must exist until it has ended. After
    an interruption, repeat it to continue. If the key is a file on this machine, a new key is added first.
    """
    from forebay.declaration.loading import load_service
    from forebay.operate.people.person import vaulted
    from forebay.privacy.keys import add_local_key, is_local, vault_key
    from forebay.privacy.wrapping import encrypt_again, is_interrupted

    must_be_given("privacy rotate", "--service", service, "FOREBAY_SERVICE")
    declared = vaulted(load_service(service))
    if is_local(declared.vault_key) and not is_interrupted(declared.vault):
        add_local_key(declared.vault_key)
    done = 0
    for done in encrypt_again(declared.vault, vault_key(declared.vault_key), datetime.now(UTC)):
        if done % 1000 == 0:
            console.print(f"{done:,} so far")
    tell(encrypted=done, key=declared.vault_key)
    console.print(f"encrypted {counted(done, 'wrapping key')} by {declared.vault_key}")
