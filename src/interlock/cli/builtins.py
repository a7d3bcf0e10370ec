"""`interlock builtins`: show what a workflow may use without defining it."""

import click
import msgspec

from interlock.cli.terminal import print_json
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
        print(published_schema().decode(), end="")
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
    print("Contracts: outputContract.contractRef, handed in as an artifact of that kind\n")
    for pack in contracts:
        print(f"  {pack.name}: {pack.purpose}")
        print(f"    {msgspec.json.encode(pack.example).decode()}")
    print("\nFeatures: features, put into every step\n")
    for name, feature in FEATURES.items():
        print(f"  {name}: {feature.purpose}")
    print("\nPassages: {kind: ref, refId: …} in promptBlocks\n")
    for name, text in PASSAGES.items():
        print(f"  {name}: {text}")
    print("\nConditions: {var: …, OPERATOR: …}, joined by and, or, not\n")
    print(f"  {', '.join(conditions.OPERATORS)}")
