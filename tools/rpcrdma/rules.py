#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""
rules.py >rules.c

Write the rules for attributes from the specification of the netlink family. Needs
python3-yaml. `make check` fails if rules.c is not what this prints.
"""

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

import yaml     # type: ignore

SPEC = Path(__file__).resolve().parents[2] / "Documentation/netlink/specs/rpcrdma.yaml"
OBJECTS = ("device", "listener", "connection")      # what messages of the family are about
TYPES = {("u32", False): "ATTR_U32", ("uint", False): "ATTR_UINT", ("uint", True): "ATTR_SERIES",
         ("string", False): "ATTR_STRING", ("flag", False): "ATTR_FLAG",
         ("nest", False): "ATTR_NEST", ("nest", True): "ATTR_LIST"}

Entry = TypedDict("Entry", {"name": str})
Definition = TypedDict("Definition", {"name": str, "entries": list[str | Entry]})
Attribute = TypedDict("Attribute", {"name": str, "type": str, "enum": str,
                                    "nested-attributes": str, "multi-attr": bool}, total=False)
AttributeSet = TypedDict("AttributeSet", {"name": str, "attributes": list[Attribute]})

HEAD = """\
// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Written by rules.py from Documentation/netlink/specs/rpcrdma.yaml */

#include <linux/rpcrdma.h>
#include "rules.h"
"""


def c_name(name: str) -> str:
    """A name of the specification in C."""
    return name.replace("-", "_")


def words(definition: Definition) -> str:
    """The names of an enumeration's values."""
    entries = [entry if isinstance(entry, str) else entry["name"]
               for entry in definition["entries"]]
    listed = textwrap.fill(", ".join([*(f'"{entry}"' for entry in entries), "NULL"]), 92)
    return (f"static const char * const {c_name(definition['name'])}[] = {{\n"
            f"{textwrap.indent(listed, chr(9))}\n}};\n")


def rule(set_name: str, attribute: Attribute) -> str:
    """The rule of one attribute."""
    name = attribute["name"]
    number = f"RPCRDMA_A_{set_name}_{name}".upper().replace("-", "_")
    fields = [f'"{name}"', TYPES[attribute["type"], attribute.get("multi-attr", False)]]
    if "enum" in attribute:
        fields.append(f".words = {c_name(attribute['enum'])}")
    if attribute["type"] == "nest":
        fields.append(f".nested = &{c_name(attribute['nested-attributes'])}_rules")
    line = f"\t[{number}] = {{ {', '.join(fields)} }},"
    if len(line.expandtabs()) <= 100:
        return line
    return f"\t[{number}] = {{\n\t\t{', '.join(fields)}\n\t}},"


def attribute_set(attributes: AttributeSet) -> str:
    """The rules of one set."""
    name = c_name(attributes["name"])
    scope = "" if name in OBJECTS else "static "
    rules = "\n".join(rule(name, attribute) for attribute in attributes["attributes"])
    return (f"static const struct attr_rule {name}_rule[] = {{\n{rules}\n}};\n\n"
            f"{scope}const struct attr_rules {name}_rules = ATTR_RULES({name}_rule);\n")


def parts() -> Iterator[str]:
    """The file, in parts with an empty line between them."""
    spec = yaml.safe_load(SPEC.read_text())
    yield HEAD
    yield from map(words, spec["definitions"])
    yield from map(attribute_set, spec["attribute-sets"])


if __name__ == "__main__":
    print("\n".join(parts()), end="")
