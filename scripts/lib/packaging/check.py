"""Checks the form of the packages in a folder, as the tools that read them would."""

import base64
import csv
import glob
import hashlib
import io
import json
import os
import re
import sys
import tarfile
import zipfile

folder = sys.argv[1]


def only(pattern):
    (found,) = glob.glob(os.path.join(folder, pattern))
    return found


def check_wheel():
    with zipfile.ZipFile(only("*.whl")) as wheel:
        assert wheel.testzip() is None
        names = wheel.namelist()
        (record,) = [name for name in names if name.endswith(".dist-info/RECORD")]
        listed = {}
        for path, sum, size in csv.reader(io.StringIO(wheel.read(record).decode())):
            listed[path] = (sum, size)
        assert set(listed) == set(names) and len(names) == len(set(names))
        for path in names:
            if path != record:
                data = wheel.read(path)
                digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
                assert listed[path] == (f"sha256={digest}", str(len(data))), path
        (program,) = [name for name in names if name.endswith(".data/scripts/baton")]
        assert (wheel.getinfo(program).external_attr >> 16) & 0o111, "the program is not executable"
        said = wheel.read(record.replace("RECORD", "WHEEL")).decode()
        tags = [line.split(": ")[1] for line in said.splitlines() if line.startswith("Tag: ")]
        platforms = os.path.basename(wheel.filename)[: -len(".whl")].split("-")[-1].split(".")
        assert tags == [f"py3-none-{platform}" for platform in platforms]


def check_npm():
    launcher, platform = {}, {}
    for path in glob.glob(os.path.join(folder, "*.tgz")):
        with tarfile.open(path) as archive:
            about = json.load(archive.extractfile("package/package.json"))
            (launcher if "bin" in about else platform)[about["name"]] = about
            assert "scripts" not in about and "dependencies" not in about
            for entry in archive.getmembers():
                assert entry.name.startswith("package") and ".." not in entry.name
                assert not entry.issym() and not entry.islnk()
    (about,) = launcher.values()
    assert about["optionalDependencies"] == {name: one["version"] for name, one in platform.items()}
    assert all(one["os"] and one["cpu"] for one in platform.values())


def check_bill():
    with open(only("*.cdx.json"), encoding="utf-8") as file:
        bill = json.load(file)
    assert bill["bomFormat"] == "CycloneDX" and bill["specVersion"] == "1.5" and bill["serialNumber"]
    refs = [part["bom-ref"] for part in bill["components"]] + [bill["metadata"]["component"]["bom-ref"]]
    assert len(refs) == len(set(refs)) == len(bill["dependencies"])
    for one in bill["dependencies"]:
        assert one["ref"] in refs and set(one["dependsOn"]) <= set(refs)
    assert all(part["licenses"][0]["expression"] for part in bill["components"])
    assert any(part["name"] == "libsqlite3-sys" for part in bill["components"])
    with open(only("*.notices.txt"), encoding="utf-8") as file:
        notices = file.read()
    for part in bill["components"]:
        if not part["name"].startswith("baton"):
            assert f"{part['name']} {part['version']} (" in notices, part["name"]


def check_paths():
    """No path of the machine that made them is in any package."""
    here = os.path.expanduser("~").encode()
    for path in glob.glob(os.path.join(folder, "*.tar.gz")):
        with tarfile.open(path) as archive:
            for entry in archive.getmembers():
                assert (entry.uid, entry.gid, entry.uname) == (0, 0, "root")
                if entry.isfile() and not entry.name.endswith("/bin/baton") and len(here) > 3:
                    assert here + b"/" not in archive.extractfile(entry).read(), entry.name


def check_binstall():
    """What crates/baton/Cargo.toml tells cargo-binstall is where the tarball has it."""
    with open("crates/baton/Cargo.toml", encoding="utf-8") as file:
        told = dict(re.findall(r'^(pkg-url|bin-dir) = "([^"]+)"', file.read(), re.MULTILINE))
    name = os.path.basename(only("baton-[0-9]*.tar.gz"))
    version, target = re.fullmatch(r"baton-([^-]+)-(.+)\.tar\.gz", name).groups()
    known = {"version": version, "target": target, "bin": "baton", "binary-ext": ""}

    def filled(text):
        return re.sub(r"\{ ([\w-]+) \}", lambda found: known[found[1]], text)

    assert filled(told["pkg-url"].split("/")[-1]) == name
    with tarfile.open(only("baton-[0-9]*.tar.gz")) as archive:
        assert archive.getmember(filled(told["bin-dir"])).mode == 0o755


check_binstall()
check_wheel()
check_npm()
check_bill()
check_paths()
