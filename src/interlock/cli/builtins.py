"""`interlock builtins`: show what a workflow may use without defining it."""

import click
import msgspec

from interlock.cli.terminal import print_document, print_json, print_lines
from interlock.core.workflow import conditions, packs
from interlock.core.workflow.builtins import FEATURES, PASSAGES
from interlock.core.workflow.file_schema import published_schema


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
@click.option("--schema", "as_schema", is_flag=True, help="Print the JSON Schema of workflow files")
def builtins(*, as_json: bool, as_schema: bool) -> None:
    """Show what a workflow may use: contracts, features, passages, conditions"""
    contracts = [pack for name in packs.names() if (pack := packs.pack(name))]
    if as_schema:
        print_document(published_schema().decode())
        return
    if as_json:
        print_json(
            {
                "contracts": contracts,
                "features": FEATURES,
                "passages": PASSAGES,
                "operators": conditions.OPERATORS,
            }
        )
        return
    print_lines("Contracts: outputContract.contractRef, submitted as an artifact of that kind", "")
    for pack in contracts:
        print_lines(f"  {pack.name}: {pack.purpose}")
        print_lines(f"    {msgspec.json.encode(pack.example).decode()}")
    print_lines("", "Features: features, put into every step", "")
    for name, feature in FEATURES.items():
        print_lines(f"  {name}: {feature.purpose}")
    print_lines("", "Passages: {kind: ref, refId: …} in promptBlocks", "")
    for name, text in PASSAGES.items():
        print_lines(f"  {name}: {text}")
    print_lines("", "Conditions: {var: …, OPERATOR: …}, joined by and, or, not", "")
    print_lines(f"  {', '.join(conditions.OPERATORS)}")
