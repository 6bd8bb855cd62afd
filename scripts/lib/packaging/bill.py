"""What is in the program: the bill of materials (CycloneDX) and the notices of third parties.

Both come from `cargo metadata`. The notices hold the licence text that each crate brings.
"""

import json
import os
import subprocess
import sys
import uuid

# What is in the program and is no crate. The text is what its licence asks for.
BESIDE_CRATES = [
    ("SQLite", "blessing", "SQLite is in the public domain. libsqlite3-sys brings its source."),
    (
        "The Rust standard library",
        "MIT OR Apache-2.0",
        "Copyright The Rust Project contributors. The texts of both licences come with baton.",
    ),
]
GLIBC = (
    "The GNU C Library",
    "LGPL-2.1-or-later",
    "Copyright Free Software Foundation, Inc. It is linked statically. The complete source of baton,\n"
    "and the script that builds it (scripts/package), let you link the program with another version.",
)
LICENCE_NAMES = ("licen", "copying", "notice", "unlicense", "copyright")


class Crates:
    """The crates of other people that are linked into the program."""

    def __init__(self, root, target):
        command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
        found = json.loads(subprocess.check_output(command, cwd=root))
        packages = {package["id"]: package for package in found["packages"]}
        nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
        (start,) = [package["id"] for package in found["packages"] if package["name"] == "baton"]
        needs, todo = {}, [start]
        while todo:
            at = todo.pop()
            if at in needs:
                continue
            # A macro runs while the program is built, and is not part of it.
            below = [
                dep["pkg"]
                for dep in nodes[at]["deps"]
                if any(kind["kind"] is None for kind in dep["dep_kinds"])
                and not any("proc-macro" in kind["kind"] for kind in packages[dep["pkg"]]["targets"])
            ]
            needs[at] = below
            todo += below
        self.version = packages[start]["version"]
        self.target = target
        order = sorted(needs, key=lambda at: (packages[at]["name"], packages[at]["version"]))
        self.all = [packages[at] for at in order]
        self.foreign = [package for package in self.all if package["source"]]
        self.needs = {self.name(packages[at]): sorted(self.name(packages[to]) for to in needs[at]) for at in order}

    @staticmethod
    def name(package):
        return f"pkg:cargo/{package['name']}@{package['version'].replace('+', '%2B')}"


def expression(package):
    """The licence as SPDX writes it: old crates separate with a slash."""
    return package["license"].replace("/", " OR ")


def bill(crates, version, commit, moment):
    """The document, in CycloneDX 1.5. Nothing in it depends on the machine or the time of the build."""

    def component(package):
        made = {
            "type": "library",
            "bom-ref": Crates.name(package),
            "name": package["name"],
            "version": package["version"],
            "licenses": [{"expression": expression(package)}],
            "purl": Crates.name(package),
        }
        if package["description"]:
            made["description"] = " ".join(package["description"].split())
        return made

    baton = next(Crates.name(package) for package in crates.all if package["name"] == "baton")
    content = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": moment,
            "component": {
                "type": "application",
                "bom-ref": baton,
                "name": "baton",
                "version": version,
                "licenses": [{"expression": "MIT OR Apache-2.0"}],
                "properties": [
                    {"name": "baton:target", "value": crates.target},
                    {"name": "baton:commit", "value": commit},
                ],
            },
        },
        "components": [component(package) for package in crates.all if package["name"] != "baton"],
        "dependencies": [{"ref": ref, "dependsOn": needs} for ref, needs in sorted(crates.needs.items())],
    }
    # The number of a document follows from what it says.
    serial = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(content, sort_keys=True))
    return json.dumps({"serialNumber": f"urn:uuid:{serial}", **content}, indent=1) + "\n"


def licence_files(package):
    folder = os.path.dirname(package["manifest_path"])
    names = [name for name in sorted(os.listdir(folder)) if name.lower().startswith(LICENCE_NAMES)]
    texts = {}
    for name in names:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                texts[name] = file.read().replace("\r\n", "\n").strip() + "\n"
    # Where a crate leaves the choice, it is MIT: then that text is enough.
    free = " AND " not in package["license"]
    mit = [name for name in texts if "mit" in name.lower()]
    if free and mit:
        texts = {name: text for name, text in texts.items() if name in mit or "notice" in name.lower()}
    return texts


def notices(crates, target):
    """Every licence text, with the crates that it is for."""
    by_text = {}
    for package in crates.foreign:
        texts = licence_files(package)
        if not texts:
            sys.exit(f"{package['name']} {package['version']} brings no licence text")
        for text in texts.values():
            by_text.setdefault(text, []).append(f"{package['name']} {package['version']} ({expression(package)})")
    parts = ["baton contains the work of others. Their notices:\n"]
    beside = BESIDE_CRATES + ([GLIBC] if target.endswith("-linux-gnu") else [])
    parts += [f"{name} ({licence})\n\n{text}\n" for name, licence, text in beside]
    for text, names in sorted(by_text.items(), key=lambda pair: pair[1]):
        parts.append("\n".join(names) + "\n\n" + text)
    return ("\n" + "-" * 80 + "\n\n").join(parts)
